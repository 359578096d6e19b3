/*
 * The slots of the ledger: whose they are, what they add up to. All of it under the ledger's lock.
 */
#ifndef GPUCAP_SLOTS_H
#define GPUCAP_SLOTS_H

#include "account.h"
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

/* A slot for this process, empty: its own if it has one (it was another program before exec, or
 * lost sight of it), else a free one; NULL when all are taken by living processes. Frees those
 * whose process is gone on the way, as far as that costs next to nothing. */
struct ledger_slot *slots_claim(struct ledger_file *file, const struct process_key *self);

/* Locks the file's byte with the slot's number, for as long as anybody has this open file: this
 * process, until it closes the descriptor, and its forked children. */
void slots_lock(struct ledger_file *file, struct ledger_slot *slot, const struct process_key *self);

/* The turn of one process at a time, of those that make a context on the device: taken or given
 * back. false: another process has it. */
bool slots_turn(const struct process_key *self, unsigned device, bool take);

/* Frees every slot whose process is gone: its number and its lock must both say so. To ask for a
 * number costs a system call for each slot; a zombie, or a number that another process has now, a
 * look into /proc. Neither is done again for all slots until twenty times as long has passed as it
 * took: a thousand processes that are all refused memory would do nothing else. Until then numbers
 * are asked for 16 slots at a time, which are all in most containers. */
void slots_reap(struct ledger_file *file, const struct process_key *self);

/* The same, and nothing at all where each slot would not be looked at so. */
void slots_reap_when_due(struct ledger_file *file, const struct process_key *self);

/* The sum over the slots for one device, and what the agent saw of processes without one; what it
 * wrote of slots within the last ten milliseconds may not be in it. */
uint64_t slots_sum(struct ledger_file *file, unsigned device);

/* The same without the lock, and without the sums that it guards. */
uint64_t slots_sum_unlocked(const struct ledger_file *file, unsigned device);

/* The least that a slot is charged for each of its contexts; 0: none has any. */
uint64_t slots_least_context(const struct ledger_file *file, unsigned device);

/* A process says in its slot what it held before it had that: the agent may have counted it. */
void slots_now_slotted(struct ledger_file *file, unsigned device, const struct ledger_held *held);

/* Whether the container has more of the device than ever before; and notes that it has, or that it
 * was refused some. */
bool slots_is_peak(struct ledger_file *file, unsigned device);
void slots_mark_peak(struct ledger_file *file, unsigned device);
void slots_mark_refused(struct ledger_file *file, unsigned device);

/* Adds `more` and takes off `less`, but no more than there is, of a word in a slot of ours. Without
 * the lock (`locked` is false) as well: nobody else writes there but the agent. */
void slots_change(struct ledger_file *file, struct ledger_slot *slot, unsigned device,
                  enum account what, uint64_t more, uint64_t less, bool locked);

/* The index of the device in the ledger, a new one if need be; -1: the table is full. */
int slots_device(struct ledger_file *file, const uint8_t uuid[16]);

#endif
