"""Every way to get device memory, through every way to find the driver's functions.

A row holds when a program gets the cap, to one granule, and is then told "out of memory", and when
everything it can ask calls the cap the size of the device. Only their own rows charge contexts, so
that the figures are exact. A program that would not stop is stopped two pieces beyond the cap: a
broken cap must not fill somebody's GPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from gpu_check import findings
from gpu_check.findings import GRANULE_MIB, POOL_GRANULE_MIB, Finding, ProbeError, SkippedError
from gpu_check.nvml import Watch
from gpu_check.probes import OUT_OF_MEMORY, PIECES_MIB, RESOLUTIONS, Bench, Probe, Taken

BEYOND_MIB = 2 * PIECES_MIB[0]
CONTEXTS = 4  # that fit below the cap


@dataclass(frozen=True, slots=True)
class Row:
    """A way to get device memory; its calls are in tests/native/programs/rows.c."""

    name: str
    symbol: str  # without which a driver does not have this row
    granule_mib: int = GRANULE_MIB

    @property
    def is_context(self) -> bool:
        """It makes contexts, which have no size of their own."""
        return self.name.startswith("context")


ROWS = (
    Row("alloc", "cuMemAlloc_v2"),
    Row("alloc_v1", "cuMemAlloc"),
    Row("pitch", "cuMemAllocPitch_v2"),
    Row("pitch_v1", "cuMemAllocPitch"),
    Row("managed", "cuMemAllocManaged"),
    Row("small", "cuMemAlloc_v2"),
    Row("async", "cuMemAllocAsync", POOL_GRANULE_MIB),
    Row("async_ptsz", "cuMemAllocAsync_ptsz", POOL_GRANULE_MIB),
    Row("async_stream", "cuMemAllocAsync", POOL_GRANULE_MIB),
    Row("pool", "cuMemAllocFromPoolAsync", POOL_GRANULE_MIB),
    Row("pool_ptsz", "cuMemAllocFromPoolAsync_ptsz", POOL_GRANULE_MIB),
    Row("pool_managed", "cuMemPoolCreate", POOL_GRANULE_MIB),
    Row("vmm", "cuMemCreate"),
    Row("vmm_mapped", "cuMemMap"),
    Row("vmm_exported", "cuMemExportToShareableHandle"),
    Row("vmm_duplicated", "cuMemExportToShareableHandle"),
    Row("vmm_imported", "cuMemImportFromShareableHandle"),
    Row("vmm_bound", "cuMulticastBindMem"),
    Row("array", "cuArrayCreate_v2"),
    Row("array_v1", "cuArrayCreate"),
    Row("array3d", "cuArray3DCreate_v2"),
    Row("array3d_v1", "cuArray3DCreate"),
    Row("mipmap", "cuMipmappedArrayCreate"),
    Row("graph", "cuGraphInstantiateWithFlags", POOL_GRANULE_MIB),
    Row("graph_v1", "cuGraphInstantiate", POOL_GRANULE_MIB),
    Row("graph_v2", "cuGraphInstantiate_v2", POOL_GRANULE_MIB),
    Row("graph_params", "cuGraphInstantiateWithParams", POOL_GRANULE_MIB),
    Row("graph_ptsz", "cuGraphInstantiateWithParams_ptsz", POOL_GRANULE_MIB),
    Row("graph_node", "cuGraphAddNode", POOL_GRANULE_MIB),
    Row("graph_inner", "cuGraphChildGraphNodeGetGraph", POOL_GRANULE_MIB),
    Row("graph_captured", "cuStreamBeginCapture_v2", POOL_GRANULE_MIB),
    Row("module", "cuModuleLoadData", POOL_GRANULE_MIB),  # with code, which is not charged
    Row("library", "cuLibraryLoadData", POOL_GRANULE_MIB),
    Row("heap", "cuCtxSetLimit"),
    Row("context", "cuCtxCreate_v2"),
    Row("context_v3", "cuCtxCreate_v3"),
    Row("context_v4", "cuCtxCreate_v4"),
)


class RowCheck(Bench):
    """Checks rows under one cap."""

    def findings(self) -> Iterator[Finding]:
        """All rows."""
        for row in ROWS:
            for resolution in RESOLUTIONS:
                yield self.finding(row, resolution)

    def finding(self, row: Row, resolution: str) -> Finding:
        """One row."""
        (found,) = findings.each([(row.name, resolution, partial(self._try, row))])
        return found

    def _try(self, row: Row, _: str, resolution: str) -> Finding:
        context_mib = self.cap_mib // CONTEXTS if row.is_context else 0
        box, watch = self.make_box(self.cap_mib, context_mib), Watch(self.nvml)
        with self.start(box, resolution, context=not row.is_context) as probe:
            if not probe.has(row.symbol):
                raise SkippedError(f"this driver has no {row.symbol}")
            return self._judge(row, resolution, probe, watch)

    def _judge(self, row: Row, resolution: str, probe: Probe, watch: Watch) -> Finding:
        before = watch.held_mib([probe.process.pid])
        taken = self._fill(row, probe)
        after = watch.held_mib([probe.process.pid])
        outside = after - before if after is not None and before is not None else None
        view = probe.see()
        totals = view.totals
        free = f"{view.free_mib:g} MiB are still said to be free"
        wrong = findings.said(
            self._wrong_amount(row, taken, outside),
            f"inside, totals are {sorted(totals)} MiB" if totals - {0, self.cap_mib} else "",
            free if view.free_mib >= row.granule_mib else "",
        )
        if wrong:
            self._require_difference(row, resolution, taken)
        figures: findings.Figures = {
            "answer": taken.answer,
            "outside_mib": outside,
            "outside_by": watch.by if outside is not None else None,
            "total_mib": view.total_mib,
            "device_total_mib": view.device_total_mib,
            "nvml_total_mib": view.nvml_total_mib,
            "nvml_total_v2_mib": view.nvml_total_v2_mib,
            "free_mib": view.free_mib,
            "granule_mib": row.granule_mib,
        }
        return findings.judged(row.name, resolution, wrong, self.cap_mib, taken.mib, figures)

    def _fill(self, row: Row, probe: Probe) -> Taken:
        if not row.is_context:
            return probe.fill(row.name, self.cap_mib + BEYOND_MIB)
        contexts = probe.take(row.name, 1, CONTEXTS + 1)
        return Taken(contexts.mib * (self.cap_mib // CONTEXTS), contexts.answer)

    def _wrong_amount(self, row: Row, taken: Taken, outside: float | None) -> str:
        over = taken.mib - self.cap_mib
        # What is free at the end may be less than the smallest piece: that much may be missing.
        allowed = self.cap_mib % CONTEXTS + 1 if row.is_context else row.granule_mib
        if over >= allowed:
            return f"got {over:g} MiB more than the cap" + (
                "" if taken.answer else " and was stopped by this check, not by the cap"
            )
        if taken.answer != OUT_OF_MEMORY:
            return f"ended with CUresult {taken.answer}, not with out-of-memory (2)"
        if -over >= allowed:
            return f"refused {-over:g} MiB below the cap"
        if outside is not None and not row.is_context:
            excess = outside - self.cap_mib
            # The driver keeps its page tables in chunks of its own.
            if excess > max(row.granule_mib, POOL_GRANULE_MIB):
                return f"from outside, NVML shows {excess:g} MiB more than the cap"
        return ""

    def _require_difference(self, row: Row, resolution: str, capped: Taken) -> None:
        """A driver that cannot do the row without the library either says nothing about the cap.

        Raises:
            SkippedError: it cannot.
        """
        if capped.mib >= self.cap_mib:
            return
        try:
            with self.start(self.make_box(None), resolution, context=not row.is_context) as probe:
                bare = self._fill(row, probe)
        except ProbeError as error:
            raise SkippedError(f"without the library: {error}") from None
        if bare.mib <= min(self.cap_mib, capped.mib):
            raise SkippedError(
                f"CUresult {bare.answer} after {bare.mib:g} MiB without the library, too"
            )
