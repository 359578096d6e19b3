"""What a plan is made from, as a file: a plan that is made from the file is the same to the byte.

The file is JSON, after the type hints of ``PlanInput``; equal inputs make equal files. It is made
in slices, so that other threads have their turn between two of them.
"""

from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from gpu_scheduler import __version__
from gpu_scheduler.core.model.catalogue import Catalogue
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Waits
from gpu_scheduler.core.model.placed_pods import NOBODY_NEAR, Nobody, PlacedPods
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.model.running_pods import Roll, RunningPod
from gpu_scheduler.core.packing.target_workload import TargetWorkload
from gpu_scheduler.core.plan_input import NOBODY, PlanInput
from gpu_scheduler.core.vocabulary import Word
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore, SeatedPods

VERSION = 4  # a new one with every change of what a plan is made from
_SLICE = 200  # objects written at once


class DumpError(ValueError):
    """A file that is no dump of this version."""


class _Header(msgspec.Struct):
    version: int
    program: str


@dataclass(frozen=True, slots=True)
class Dump:
    """A ``PlanInput``; what of it and its cluster has no form in JSON stands beside it."""

    version: int
    program: Word  # its version
    running_pods: tuple[RunningPod, ...]
    placed_pods: SeatedPods | None  # None: there are none
    held_by_model: tuple[tuple[ProjectName, Word, int], ...]
    dev_trouble: tuple[tuple[int, str], ...]
    fractions: tuple[tuple[int, int], ...]
    given: PlanInput

    def to_input(self) -> PlanInput:
        """What the plan was made from."""
        cluster = self.given.cluster.copy()
        cluster.held_by_model = {(name, model): milli for name, model, milli in self.held_by_model}
        cluster.dev_trouble = dict(self.dev_trouble)
        cluster.fractions = dict(self.fractions)
        if self.placed_pods is not None:
            cluster.placed_pods = PlacedPodStore.of_seated(self.placed_pods)
        return replace(self.given, cluster=cluster, running_pods=Roll(self.running_pods))


def dump_of(given: PlanInput, workload: TargetWorkload) -> Dump:
    """A copy of what the next plan is made from, with the workload of the planner's cache."""
    frozen = given.frozen()
    cluster, pods = frozen.cluster, frozen.running_pods
    assert isinstance(pods, Roll)
    near = cluster.placed_pods
    seated = None
    if not isinstance(near, Nobody):
        assert isinstance(near, PlacedPodStore)
        waiting = {pod.affinity for job in given.jobs for pod in job.pods}
        seated = near.seated([who for who in waiting if who is not None])
    held = sorted((*key, milli) for key, milli in cluster.held_by_model.items())
    trouble = sorted(cluster.dev_trouble.items())
    fractions = sorted(cluster.fractions.items())
    cluster.placed_pods = NOBODY_NEAR
    cluster.held_by_model = {}
    cluster.dev_trouble = {}
    cluster.fractions = {}
    cluster.catalogue = Catalogue(cluster.catalogue.types)
    rest = replace(frozen, running_pods=NOBODY, workload=given.workload or workload)
    return Dump(
        VERSION,
        __version__,
        pods.all(),
        seated,
        tuple(held),
        tuple(trouble),
        tuple(fractions),
        rest,
    )


def written(dump: Dump) -> Iterator[bytes]:
    """The file, in slices."""
    yield from _slices(dump)
    yield b"\n"


def read(data: bytes) -> Dump:
    """A file.

    Raises:
        DumpError: it is none, it is damaged, or another version wrote it.
    """
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.version != VERSION:
            raise DumpError(
                f"version {header.version} of dumps, by {header.program}; this program reads "
                f"version {VERSION}"
            )
        found = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DumpError(f"no dump, or a damaged one: {error}") from None
    if not _fits(found.given.cluster):
        raise DumpError("a damaged dump: the arrays of given.cluster do not belong together")
    return found


def canonical(plan: Plan) -> bytes:
    """A plan as text: equal plans make equal ones."""
    return msgspec.json.format(_ENCODER.encode(plan), indent=2) + b"\n"


def _slices(value: Any) -> Iterator[bytes]:
    if isinstance(value, Dump | PlanInput | Cluster | SeatedPods):
        before = b"{"
        for each in fields(value):
            yield b'%s"%s":' % (before, each.name.encode())
            yield from _slices(getattr(value, each.name))
            before = b",\n"
        yield b"}"
    elif isinstance(value, Mapping) and len(value) > _SLICE:
        items = sorted(value.items())
        parts = (dict(items[at : at + _SLICE]) for at in range(0, len(items), _SLICE))
        yield from _joined(parts, b"{", b"}")
    elif isinstance(value, list | tuple) and len(value) > _SLICE:
        lists = (value[at : at + _SLICE] for at in range(0, len(value), _SLICE))
        yield from _joined(lists, b"[", b"]")
    else:
        yield _ENCODER.encode(value)


def _joined(parts: Iterator[Any], begin: bytes, end: bytes) -> Iterator[bytes]:
    for part in parts:
        yield begin + _ENCODER.encode(part)[1:-1]
        begin = b",\n"
    yield end


def _fits(c: Cluster) -> bool:
    """Whether the arrays belong together."""
    nodes: tuple[Sized, ...] = (
        c.free_cpu_milli,
        c.free_memory_bytes,
        c.free_ephemeral_bytes,
        c.free_pods,
        c.first[1:],
        *c.free_scalars.values(),
    )
    devices: tuple[Sized, ...] = (
        c.dev_model,
        c.dev_usable_mib,
        c.dev_compute,
        c.dev_healthy,
        c.free_milli,
        c.free_mib,
    )
    return (
        {*map(len, nodes)} == {len(c.nodes)}
        and {*map(len, devices)} == {len(c.dev_id)}
        and c.first == sorted(c.first)
        and (c.first[0], c.first[-1]) == (0, len(c.dev_id))
    )


def _plain(value: Any) -> Any:
    """What msgspec has no form for."""
    if isinstance(value, Waits):
        return tuple(value)
    if value is NOBODY:
        return None
    raise TypeError(f"no form in JSON for {type(value).__name__}")


def _from_plain(hint: type, value: Any) -> Any:
    return NOBODY_NEAR if hint is PlacedPods else NOBODY


_ENCODER = msgspec.json.Encoder(enc_hook=_plain, order="deterministic")
_DECODER = msgspec.json.Decoder(Dump, dec_hook=_from_plain)
