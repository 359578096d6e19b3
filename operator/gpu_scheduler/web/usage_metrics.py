"""Metrics of what GPUs and their work do: a pure function of what the leader knows.

What nobody knows is absent, never 0, and no label names a trial or a pod: there are as many series
as there is work that holds GPUs, however many pods it has. The label is ``gpujob``, as Prometheus
puts a ``job`` of its own on every series; so ``gpu_container``. The text of 10,000 jobs
is made by the thread that writes it, and not on the event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, Sample

from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.usage.figures import ClusterUse, ContainerFigures, WorkUse
from gpu_scheduler.web.collector import filled, labelled
from gpu_scheduler.web.work_samples import LABELS, Figure, LabelledWork, WorkSamples


def figures(use: ClusterUse) -> Iterator[Metric]:
    """All of them; ``use`` must not change afterwards."""
    yield labelled(
        GaugeMetricFamily,
        "gpusched_gpus",
        "Where the GPUs are: each adds up to exactly one over the states.",
        "state",
        use.gpus.items(),
    )
    work = LabelledWork(use.work)
    for name, text, figure in _FIGURES:
        yield _of_work(f"gpusched_gpujob_{name}", text, work, figure)
    info = "1 for each workload with GPUs: a GPUJob, or kind/name of who owns pods that ask alone."
    yield _of_work("gpusched_gpujob_info", info, work, lambda each: 1.0, typed=True)
    for name, text, of_container in _OF_CONTAINERS:
        yield _of_containers(f"gpusched_gpujob_container_{name}", text, use.work, of_container)
    yield _account("gpu", "GPU-seconds held since this replica leads.", use.gpu_seconds)
    yield _account("gpu_idle", "Of these, past the idle threshold.", use.idle_gpu_seconds)
    yield labelled(
        GaugeMetricFamily,
        "gpusched_advice",
        "Workloads that hold GPUs, by the advice that comes first for them.",
        "rule",
        sorted(Counter(each.advice for each in use.work if each.advice).items()),
    )
    yield labelled(
        GaugeMetricFamily,
        "gpusched_agent_last_report_timestamp_seconds",
        "When the agent of a node last said what its GPUs do, by the leader's clock.",
        "node",
        sorted(use.heard.items()),
    )
    yield GaugeMetricFamily(
        "gpusched_silent_agents",
        "Agents that did not answer when they were last asked what their GPUs do.",
        value=use.silent_agents,
    )


def _bytes(mib: float | None) -> float | None:
    return None if mib is None else mib * MIB


_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("allocated_gpus", "GPUs that it holds.", lambda each: each.gpus),
    (
        "requested_gpus",
        "GPUs that a GPUJob asks for, with all pods that may run at once; absent where in MiB.",
        lambda each: each.requested_gpus,
    ),
    (
        "gpu_utilization_ratio",
        "Share of time with a kernel of its own: mean of its shares, weighted by them.",
        lambda each: each.busy,
    ),
    (
        "gpu_memory_used_bytes",
        "Device memory that it holds.",
        lambda each: _bytes(each.memory_mib),
    ),
    (
        "gpu_memory_limit_bytes",
        "Device memory that it may hold.",
        lambda each: _bytes(each.memory_limit_mib),
    ),
    ("cpu_used_cores", "CPU in use.", lambda each: each.cpu_cores),
    ("ram_used_bytes", "Memory of the machine in use.", lambda each: _bytes(each.ram_mib)),
    ("idle_seconds", "Since the last kernel of any of it.", lambda each: each.idle_seconds),
)


_OF_CONTAINERS: tuple[tuple[str, str, Callable[[ContainerFigures], float | None]], ...] = (
    (
        "allocated_gpus",
        "GPUs that a container holds, in all pods of a workload; only where a pod has several "
        "containers with GPUs, and so below.",
        lambda each: each.gpus,
    ),
    (
        "gpu_utilization_ratio",
        "Share of time with a kernel of the container.",
        lambda each: each.busy,
    ),
    (
        "gpu_memory_used_bytes",
        "Device memory that the container holds.",
        lambda each: _bytes(each.memory_mib),
    ),
    (
        "gpu_memory_limit_bytes",
        "Device memory that the container may hold.",
        lambda each: _bytes(each.memory_limit_mib),
    ),
)


def _of_containers(
    name: str,
    text: str,
    work: Sequence[WorkUse],
    figure: Callable[[ContainerFigures], float | None],
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(*LABELS, "gpu_container"))
    known = (
        ([each.name, each.namespace, each.project, container.name], value)
        for each in work
        for container in each.containers
        if (value := figure(container)) is not None
    )
    return filled(family, known)


def _of_work(
    name: str, text: str, work: LabelledWork, figure: Figure, *, typed: bool = False
) -> Metric:
    samples = WorkSamples(name, work, figure, typed)
    family = GaugeMetricFamily(name, text, labels=samples.labels)
    # Can be walked and can write itself: exposition.py asks for no more.
    family.samples = cast(list[Sample], samples)
    return family


def _account(name: str, text: str, seconds: Mapping[tuple[str, str], float]) -> Metric:
    family = CounterMetricFamily(f"gpusched_{name}_seconds", text, labels=("project", "type"))
    return filled(family, sorted(seconds.items()))
