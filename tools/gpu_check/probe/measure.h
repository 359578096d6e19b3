/* What a process of `make gpu-check` measures by itself: times, and NVML as
 * seen from inside. */
#ifndef MEASURE_H
#define MEASURE_H

#include "rows.h"

/* Median over so many batches; the answer is the driver's last. */
double pair_nanoseconds(const struct row *row, size_t bytes, long rounds, int *answer);

/* Of one refusal of so many bytes, likewise; any other answer ends it. */
double refusal_nanoseconds(const struct row *row, size_t bytes, long rounds, int *answer);

/* Of one launch of an empty kernel, waiting for a batch of them included; 0: it
 * could not be loaded. */
double launch_nanoseconds(long rounds);

struct nvml_view {
    unsigned long long total, total_v2, free; /* bytes; 0: could not be asked */
};

/* The first device of CUDA, found in NVML by its UUID. */
struct nvml_view nvml_view(void);

#endif
