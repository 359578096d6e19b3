/* Prints the sizes and offsets of the ledger, one "name value" a line, for comparison with the
 * agent's. */
#include "ledger.h"

#include <stdio.h>

#define SHOW(name, value) printf("%s %zu\n", name, (size_t)(value))

int main(void) {
    printf("magic %s\n", LEDGER_MAGIC);
    SHOW("version", LEDGER_VERSION);
    SHOW("file_bytes", sizeof(struct ledger_file));
    SHOW("header_bytes", sizeof(struct ledger_header));
    SHOW("slot_bytes", sizeof(struct ledger_slot));
    SHOW("slot_count", LEDGER_SLOTS);
    SHOW("device_count", LEDGER_DEVICES);
    SHOW("header.version", offsetof(struct ledger_header, version));
    SHOW("header.header_bytes", offsetof(struct ledger_header, header_bytes));
    SHOW("header.slot_bytes", offsetof(struct ledger_header, slot_bytes));
    SHOW("header.slot_count", offsetof(struct ledger_header, slot_count));
    SHOW("header.device_count", offsetof(struct ledger_header, device_count));
    SHOW("header.slots_seen", offsetof(struct ledger_header, slots_seen));
    SHOW("header.mutex", offsetof(struct ledger_header, mutex));
    SHOW("header.device", offsetof(struct ledger_header, device));
    SHOW("header.keeps_marks", offsetof(struct ledger_header, keeps_marks));
    SHOW("header.mark", offsetof(struct ledger_header, mark));
    SHOW("header.unslotted", offsetof(struct ledger_header, unslotted));
    SHOW("header.unslotted_until", offsetof(struct ledger_header, unslotted_until));
    SHOW("mark.bytes", sizeof(struct ledger_mark));
    SHOW("mark.peak_bytes", offsetof(struct ledger_mark, peak_bytes));
    SHOW("mark.refused", offsetof(struct ledger_mark, refused));
    SHOW("device.bytes", sizeof(struct ledger_device));
    SHOW("device.uuid", offsetof(struct ledger_device, uuid));
    SHOW("device.in_use", offsetof(struct ledger_device, in_use));
    SHOW("slot.pid", offsetof(struct ledger_slot, pid));
    SHOW("slot.start_time", offsetof(struct ledger_slot, start_time));
    SHOW("slot.pid_namespace", offsetof(struct ledger_slot, pid_namespace));
    SHOW("slot.device", offsetof(struct ledger_slot, device));
    SHOW("held.bytes", sizeof(struct ledger_held));
    SHOW("held.used_bytes", offsetof(struct ledger_held, used_bytes));
    SHOW("held.context_bytes", offsetof(struct ledger_held, context_bytes));
    return 0;
}
