/*
 * The commands that `make gpu-check` gives to a process on its standard input,
 * one a line; each is answered with one line of numbers. The functions were
 * found by whoever called resolve_all().
 *
 * - has SYMBOL: 1: the driver has it, 0: not
 * - start: CUresult of cuInit
 * - context: retains the primary context and makes it current: CUresult
 * - take ROW BYTES MOST: pieces taken until refused, CUresult of the last
 * - drop ROW COUNT: pieces given back, CUresult of the last
 * - see: bytes: cuMemGetInfo free and total, cuDeviceTotalMem; NVML's total of version 1,
 *   of version 2, and free. 0: could not be asked
 * - cost ROW BYTES ROUNDS: nanoseconds to take and give back one piece: median of ROUNDS batches
 * - refuse ROW BYTES ROUNDS: nanoseconds of one refusal of a piece, likewise
 * - launch ROUNDS: nanoseconds of one launch of an empty kernel, likewise; 0: no kernel
 * - unknown: CUresults of releasing what the driver never gave out
 * - churn ROW BYTES: answers 0 and then takes and gives back until it is killed
 * - fork: the process id of a child that has all that is open, and does nothing until it is killed
 */
#ifndef COMMANDS_H
#define COMMANDS_H

/* Obeys until standard input ends. */
void serve(void);

#endif
