/* What a container with a cap sees of a device, for the CUDA and the NVML views. */
#ifndef GPUCAP_VIEWS_H
#define GPUCAP_VIEWS_H

#include <stdint.h>

uint64_t views_total(uint64_t physical);
uint64_t views_free(int device, uint64_t physically_free);

#endif
