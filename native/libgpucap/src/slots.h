/*
 * The slots of the ledger: whose they are, what they add up to. All of it under the ledger's lock.
 */
#ifndef GPUCAP_SLOTS_H
#define GPUCAP_SLOTS_H

#include "ledger.h"

/* What tells a process from every other one, also from an earlier one with the same number. */
struct process_key {
    uint32_t pid;
    uint64_t start_time;
    uint64_t pid_namespace;
    int file; /* the open ledger; not in the ledger */
};

/* This process; read from /proc, so before the lock is taken. */
struct process_key slots_self(void);

/* A slot for this process, empty, with a lock on the file's byte of its number that the kernel
 * holds for as long as the process lives; NULL when all are taken by living processes. Frees those
 * whose process is gone on the way, as far as that costs next to nothing. */
struct ledger_slot *slots_claim(struct ledger_file *file, const struct process_key *self);

/* Frees every slot whose process is gone. Always those whose number is free; a zombie, or a number
 * that another process has now, costs a look into /proc for each slot, which is not done again
 * until twenty times as long has passed as it took: a thousand processes that are all refused
 * memory would do nothing else. */
void slots_reap(struct ledger_file *file, const struct process_key *self);

/* The sum over the slots for one device. */
uint64_t slots_sum(const struct ledger_file *file, unsigned device);

/* The index of the device in the ledger, a new one if need be; -1: the table is full. */
int slots_device(struct ledger_file *file, const uint8_t uuid[16]);

#endif
