/*
 * The fake NVML's performance monitoring: means between two samples. The rules are those of "GPM
 * Functions" in NVIDIA's NVML reference: "for Hopper or newer fully supported devices", both
 * buffers allocated by the caller, a version, and an answer for each metric of its own. The
 * documented least interval of 100 ms between samples is not kept: figures here are exact.
 */
#include <stdlib.h>

#include "nvml.h"

enum { HOPPER = 9, KIB_OF_MIB = 1024 };

struct nvmlGpmSample_st {
    nvmlDevice_t device; /* NULL: nothing was read into it yet */
    FgDone done;
};

static bool is_supported(nvmlDevice_t device) {
    return device->config->major >= HOPPER;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    NVML_ENTER(device, shared);
    (void)shared;
    NVML_REQUIRE(support, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE(support->version == NVML_GPM_SUPPORT_VERSION,
                 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    support->isSupportedDevice = is_supported(device);
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!sample) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    free(sample);
    return sample ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(sample, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE(is_supported(device), NVML_ERROR_NOT_SUPPORTED);
    *sample = (struct nvmlGpmSample_st){.device = device, .done = shared->done};
    return nvml_leave(NVML_SUCCESS);
}

/* The mean of one figure between two samples; false: it is none that is kept here. */
static bool mean(unsigned int metric, const FgDone *older, const FgDone *newer, double *value) {
    double time = (double)(newer->until - older->until);
    switch (metric) {
    case NVML_GPM_METRIC_ANY_TENSOR_UTIL:
        *value = (double)(newer->tensor - older->tensor) / time;
        return true;
    case NVML_GPM_METRIC_DRAM_BW_UTIL:
        *value = (double)(newer->memory - older->memory) / time;
        return true;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
        *value = (double)(newer->sent - older->sent) / time / KIB_OF_MIB;
        return true;
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
        *value = (double)(newer->received - older->received) / time / KIB_OF_MIB;
        return true;
    default:
        return false;
    }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!metrics || !metrics->sample1 || !metrics->sample2) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (metrics->version != NVML_GPM_METRICS_GET_VERSION) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    const struct nvmlGpmSample_st *older = metrics->sample1, *newer = metrics->sample2;
    if (!older->device || older->device != newer->device ||
        older->done.until >= newer->done.until) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned int i = 0; i < metrics->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &metrics->metrics[i];
        metric->value = 0;
        bool known = mean(metric->metricId, &older->done, &newer->done, &metric->value);
        metric->nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}
