/* Streams and events. Nothing runs: a stream is always done, and a captured one remembers only
 * memory. */
#include <stdlib.h>

#include "process.h"

struct CUstream_st {
    Device *device;
    CUcontext context;
    CUgraph capture; /* NULL: none */
};

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(stream && flags <= 1, CUDA_ERROR_INVALID_VALUE);
    CUstream made = calloc(1, sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->device = device;
    made->context = fg_current();
    *stream = made;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamCreate, (CUstream * stream, unsigned int flags),
           cuStreamCreateWithPriority(stream, flags, 0))

static bool is_default(CUstream stream) {
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(!is_default(stream), CUDA_ERROR_INVALID_HANDLE);
    free(stream);
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))

static CUresult synchronize(CUstream stream) {
    FG_ENTER_CONTEXT(device);
    fg_pools_synchronize(is_default(stream) ? device : stream->device,
                         is_default(stream) ? NULL : stream);
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamSynchronize, (CUstream stream), synchronize(stream))
FG_FORWARD(cuStreamSynchronize_ptsz, (CUstream stream), synchronize(stream))
FG_FORWARD(cuCtxSynchronize, (void), synchronize(NULL))

static CUresult nothing(bool valid) {
    FG_ENTER_CONTEXT(device);
    return fg_leave(valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
FG_FORWARD(cuStreamQuery, (CUstream stream), nothing(true))
FG_FORWARD(cuStreamQuery_ptsz, (CUstream stream), nothing(true))
FG_FORWARD(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), nothing(event))
FG_FORWARD(cuStreamWaitEvent_ptsz, (CUstream stream, CUevent event, unsigned int flags),
           nothing(event))
FG_FORWARD(cuEventRecord, (CUevent event, CUstream stream), nothing(event))
FG_FORWARD(cuEventRecord_ptsz, (CUevent event, CUstream stream), nothing(event))
FG_FORWARD(cuEventQuery, (CUevent event), nothing(event))
FG_FORWARD(cuEventSynchronize, (CUevent event),
           event ? synchronize(NULL) : CUDA_ERROR_INVALID_HANDLE)

static CUresult stream_context(CUstream stream, CUcontext *context) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(context, CUDA_ERROR_INVALID_VALUE);
    *context = is_default(stream) ? fg_current() : stream->context;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamGetCtx, (CUstream stream, CUcontext *context), stream_context(stream, context))
FG_FORWARD(cuStreamGetCtx_ptsz, (CUstream stream, CUcontext *context),
           stream_context(stream, context))

bool fg_stream_capture(CUstream stream, CUgraph *graph) {
    *graph = is_default(stream) ? NULL : stream->capture;
    return *graph != NULL;
}

static CUresult begin_capture(CUstream stream) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(!is_default(stream) && !stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    return fg_leave(fg_graph_new(&stream->capture));
}
FG_FORWARD(cuStreamBeginCapture_v2, (CUstream stream, int mode), begin_capture(stream))
FG_FORWARD(cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode), begin_capture(stream))

static CUresult end_capture(CUstream stream, CUgraph *graph) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(graph && !is_default(stream) && stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    *graph = stream->capture;
    stream->capture = NULL;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end_capture(stream, graph))
FG_FORWARD(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph), end_capture(stream, graph))

static CUresult is_capturing(CUstream stream, int *status) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(status, CUDA_ERROR_INVALID_VALUE);
    *status = !is_default(stream) && stream->capture ? 1 : 0;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuStreamIsCapturing, (CUstream stream, int *status), is_capturing(stream, status))
FG_FORWARD(cuStreamIsCapturing_ptsz, (CUstream stream, int *status), is_capturing(stream, status))

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(event, CUDA_ERROR_INVALID_VALUE);
    *event = malloc(1);
    return fg_leave(*event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuEventDestroy_v2(CUevent event) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(event, CUDA_ERROR_INVALID_HANDLE);
    free(event);
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuEventDestroy, (CUevent event), cuEventDestroy_v2(event))

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(milliseconds, CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(start && end, CUDA_ERROR_INVALID_HANDLE);
    *milliseconds = 0.01f;
    return fg_leave(CUDA_SUCCESS);
}
