"""Kinds of work, drawn at random, and what should be said of each.

A kind is told by its cause, as who wrote the program would. Where the same figures have two causes
that nobody outside the program can tell apart, both answers are right; docs/advice.md says which.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from random import Random
from typing import Any

from tests.unit.usage.advice.programs import Loop, Pace, Watch
from tests.unit.usage.advice.seen import DEVICE_MIB, STEP, windows_of, work_of

from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.work import Member, Work, WorkType
from gpu_scheduler.usage.window import WARM_UP_SECONDS, WINDOW_SECONDS, Look, Window

MINUTE = 60


@dataclass(frozen=True)
class Ranges:
    """How marked a cause is, from and to.

    Attributes:
        slow: how much longer a batch takes to come than to be computed.
        code: the same of code between kernels.
        still: share of time in stalls.
        ram: in use, of its limit, by what has too few workers.
        hot: share of time.
        behind: use of the slow pod, of that of the others.
        crowded: share of who has to take turns with one or two others.
    """

    slow: tuple[float, float]
    code: tuple[float, float]
    still: tuple[float, float]
    ram: tuple[float, float]
    hot: tuple[float, float]
    behind: tuple[float, float]
    crowded: tuple[float, float]


MARKED = Ranges(
    slow=(3, 10),
    code=(2, 9),
    still=(0.25, 0.38),
    ram=(0.05, 0.45),
    hot=(0.35, 1.0),
    behind=(0.2, 0.6),
    crowded=(0.7, 0.9),
)
"""Plain cases, that somebody who looked at the curves would name without doubt."""
FROM_SLIGHT = Ranges(
    slow=(1.3, 10),
    code=(0.6, 9),
    still=(0.1, 0.6),
    ram=(0.05, 0.95),
    hot=(0.1, 1.0),
    behind=(0.2, 0.9),
    crowded=(0.55, 0.95),
)
"""Slight ones too, of which it is open whether anything should be said."""


class Draws(Random):
    """A source of chance for one trace."""

    ranges = MARKED


NOTHING = Pace(0.0, 0.01)


@dataclass(frozen=True)
class Trace:
    """What was seen of one piece of work.

    Attributes:
        looks: all of its life.
        share: of the device.
        facts: else of ``Work``.
        members: factors of the mean use, of each pod of several.
        cost: share of its time that it would save without its cause, as who wrote the program would
            work it out; None: its cause costs no time.
    """

    looks: list[Look]
    share: float
    facts: dict[str, Any]
    members: tuple[float, ...] = ()
    cost: float | None = None

    @cached_property
    def windows(self) -> list[Window]:
        """All of its life."""
        return windows_of(self.looks, self.share)

    def work(self, looks: int | None = None) -> Work:
        """As it is known after so many of the looks."""
        seen = self.looks[:looks]
        full = max(len(seen) * STEP - WARM_UP_SECONDS, 0) // WINDOW_SECONDS
        work = work_of(seen, self.share, self.windows[:full], **self.facts)
        means = [each.busy_mean for each in work.windows]
        members = [
            Member(f"train-{at}", tuple(None if mean is None else mean * factor for mean in means))
            for at, factor in enumerate(self.members)
        ]
        return replace(work, members=members)


@dataclass(frozen=True)
class WorkKind:
    """A kind of work.

    Attributes:
        name: for people.
        draw: one of it.
        right: headlines that are right; none: silence, all its life.
        names: a word of what is in its way, which the advice has to say.
    """

    name: str
    draw: Callable[[Draws], Trace]
    right: frozenset[RuleName]
    names: str = ""


def watch(rng: Draws, share: float = 1.0, **fields: Any) -> Watch:
    """With what differs from one container to the next, whatever it does."""
    return Watch(
        rng,
        share,
        **{
            "memory": rng.uniform(0.55, 0.96),
            "ram": rng.uniform(0.1, 0.9),
            "noise": rng.uniform(0.0, 0.06),
            "wander": rng.uniform(0.0, 0.06),
            "blind": rng.choice([0.0, rng.uniform(0, 0.05)]),
            **fields,
        },
    )


def long(rng: Draws) -> float:
    """Seconds of a run that lasts."""
    return rng.uniform(45, 150) * MINUTE


def start(rng: Draws, seen: Watch) -> list[Look]:
    """Imports, downloads, compilation."""
    return seen.steady(Pace(0.0, rng.uniform(0.05, 0.6)), rng.uniform(20, 280), memory_mib=0.0)


def cores(rng: Draws) -> float:
    return float(rng.choice([4, 6, 8, 12, 16]))


def fed(rng: Draws) -> Loop:
    """A loop whose GPU is what takes the time."""
    code = rng.uniform(0.02, 0.12)
    workers, limit = rng.randint(2, 8), cores(rng)
    supply = rng.uniform(0.2, 0.8) * (1 + code)
    return Loop(1.0, code, supply * min(workers, limit), 0.0, workers, limit, rng.random() < 0.5)


def facts(loop: Loop | None = None, rng: Draws | None = None, **other: Any) -> dict[str, Any]:
    if rng is not None and "gpus" not in other:
        other["gpus"] = rng.choice([1, 1, 2, 4, 8])
    return {"cpu_cores": loop.cores if loop else 8.0, **other}


def just_fed(rng: Draws) -> Trace:
    """Its loaders just keep up, or nearly."""
    seen, limit = watch(rng), cores(rng)
    workers = rng.randint(2, int(limit))
    slow = rng.uniform(0.85, 1.2) * workers
    loop = Loop(1.0, 0.05, slow, 0.0, workers, limit, rng.random() < 0.5)
    return Trace(start(rng, seen) + seen.steady(loop.steady(), long(rng)), 1.0, facts(loop, rng))


def on_step(amount: float) -> float:
    """The share that somebody asks for who needs so much: a multiple of 0.05."""
    return min(max(ceil(amount * 20 - 1e-9) / 20, 0.05), 1.0)


def well_fed(rng: Draws) -> Trace:
    seen, loop = watch(rng), fed(rng)
    return Trace(start(rng, seen) + seen.steady(loop.steady(), long(rng)), 1.0, facts(loop, rng))


def on_a_share(rng: Draws) -> Trace:
    """A share that was chosen for its memory, or for its use, and is used as it was meant."""
    loop = fed(rng)
    need = rng.uniform(0.08, 0.9)
    share = on_step(need * rng.uniform(1.0, 1.1))
    by_memory = rng.random() < 0.5
    used = rng.uniform(0.85 * share, 1.0) if by_memory else need
    memory = need / share if by_memory else rng.uniform(0.1, 0.95)
    seen = watch(rng, share, memory=memory, noise=rng.uniform(0, 0.06) * used)
    pace = Pace(used, loop.steady().cpu)
    return Trace(start(rng, seen) + seen.steady(pace, long(rng)), share, facts(loop))


def beside_a_busy_neighbour(rng: Draws) -> Trace:
    """Two programs on one device, each with what its share says."""
    loop, share = fed(rng), rng.choice([0.3, 0.5, 0.7])
    seen = watch(
        rng, share, memory=rng.uniform(0.9, 0.96), noise=0.03 * share, neighbours=1.0 - share
    )
    pace = Pace(share * rng.uniform(0.96, 1.0), loop.steady().cpu)
    return Trace(start(rng, seen) + seen.steady(pace, long(rng)), share, facts(loop))


def long_to_load(rng: Draws) -> Trace:
    seen, loop = watch(rng), fed(rng)
    pace = rng.choice(
        [
            Pace(0.0, rng.uniform(1.0, loop.cores) / loop.cores),
            Pace(0.0, 0.02, rng.uniform(0.3, 0.9)),
        ]
    )
    loading = seen.steady(pace, rng.uniform(8, 26) * MINUTE, memory_mib=0.0)
    timeout = rng.choice([10, 20, 60]) * MINUTE
    return Trace(
        loading + seen.steady(loop.steady(), long(rng)),
        1.0,
        facts(loop, rng, idle_timeout=timeout),
    )


def with_pauses(rng: Draws) -> Trace:
    """Epochs with an evaluation, and checkpoints."""
    seen, loop = watch(rng), fed(rng)
    epoch, evaluation = rng.uniform(8, 40) * MINUTE, rng.uniform(30, 120)
    checkpoint, every = rng.uniform(5, 40), rng.uniform(5, 15) * MINUTE
    slow = Pace(rng.uniform(0.1, 0.6), 0.3)

    def phases() -> Iterator[tuple[float, Pace]]:
        while True:
            left = epoch
            while left > 0:
                yield min(every, left), loop.steady()
                yield checkpoint, Pace(0.0, 0.1, 0.4)
                left -= every
            yield evaluation, slow

    return Trace(start(rng, seen) + seen.mixed(phases(), long(rng)), 1.0, facts(loop, rng))


def notebook_looks(rng: Draws, seen: Watch, most_think: float, used: float) -> list[Look]:
    def phases() -> Iterator[tuple[float, Pace]]:
        while True:
            yield rng.uniform(0.3, 8) * MINUTE, Pace(used * rng.uniform(0.5, 1.0), 0.12)
            yield rng.uniform(0.5, most_think) * MINUTE, NOTHING

    return start(rng, seen) + seen.mixed(phases(), long(rng))


def notebook(rng: Draws) -> Trace:
    share = rng.choice([0.1, 0.2, 0.25, 0.5, 1.0])
    seen = watch(rng, share, memory=rng.uniform(0.9, 0.97))
    return Trace(
        notebook_looks(rng, seen, 25, 1.0),
        share,
        facts(type=WorkType.INTERACTIVE, idle_timeout=60 * MINUTE),
    )


def service_looks(rng: Draws, seen: Watch, used: float) -> list[Look]:
    """Requests come and go."""

    def phases() -> Iterator[tuple[float, Pace]]:
        while True:
            yield rng.uniform(5, 120), Pace(used * rng.uniform(0.05, 1.0), 0.2)

    return start(rng, seen) + seen.mixed(phases(), long(rng))


def service(rng: Draws) -> Trace:
    """Its weights and its cache fill its share."""
    share = rng.choice([0.1, 0.25, 0.4, 0.5, 0.75, 1.0])
    seen = watch(rng, share, memory=rng.uniform(0.9, 0.98))
    return Trace(service_looks(rng, seen, share), share, facts(type=WorkType.SERVICE))


def takes_all_and_works(rng: Draws) -> Trace:
    """JAX and TensorFlow as they are out of the box."""
    seen, loop = watch(rng, memory=rng.uniform(0.93, 0.99)), fed(rng)
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng, takes_all=True))


def too_young(rng: Draws) -> Trace:
    """Whatever it is, there is too little to go by."""
    loop = Loop(1.0, rng.uniform(0.02, 6.0), rng.uniform(0.0, 30.0), 0.0, 4, 8.0)
    seen = watch(rng)
    looks = start(rng, seen) + seen.steady(loop.steady(), rng.uniform(2, 24) * MINUTE)
    return Trace(looks, 1.0, facts(loop, rng))


def use_unknown(rng: Draws) -> Trace:
    """MPS, MIG, or a driver that does not say."""
    seen, loop = watch(rng, blind=1.0, memory=rng.uniform(0.05, 0.96)), fed(rng)
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng), device_busy=None)
    return Trace(looks, 1.0, facts(loop, rng))


def gang(rng: Draws) -> Trace:
    trace = well_fed(rng)
    return Trace(trace.looks, 1.0, trace.facts, _members(rng))


def _members(rng: Draws) -> tuple[float, ...]:
    return tuple(min(rng.gauss(1.0, 0.04), 1.0) for _ in range(rng.choice([2, 4, 8, 16])))


def behind(rng: Draws) -> Trace:
    """One pod of several has a slow node, or slow data; kernels of the others spin."""
    trace = well_fed(rng)
    members = [*_members(rng)]
    slow = rng.uniform(*rng.ranges.behind)
    members[rng.randrange(len(members))] = slow
    if len(members) == 2:
        members.append(1.0)
    return Trace(trace.looks, 1.0, trace.facts, tuple(members), cost=1.0 - slow)


def never(rng: Draws) -> Trace:
    seen = watch(rng, blind=0.0)
    pace = rng.choice([NOTHING, Pace(0.0, rng.uniform(0.1, 1.0))])
    looks = seen.steady(pace, long(rng), memory_mib=0.0, device_busy=0.0)
    return Trace(looks, 1.0, facts(rng=rng, idle_timeout=rng.choice([None, 30 * MINUTE])))


def left_alone(rng: Draws) -> Trace:
    """It has done its work, and still holds its GPU."""
    kind = rng.choice(list(WorkType))
    timeout = rng.choice([15, 30, 60]) * MINUTE
    seen, loop = watch(rng, rng.choice([0.25, 0.5, 1.0])), fed(rng)
    looks = start(rng, seen) + seen.steady(loop.steady(), rng.uniform(15, 60) * MINUTE)
    looks += seen.steady(NOTHING, timeout * rng.uniform(1.1, 2.0))
    return Trace(looks, seen.share, facts(loop, type=kind, idle_timeout=timeout))


HALF_CLOCK = 0.5
"""Of a brake: NVIDIA's slow a device down to half its clock or less (NVML, clock event reasons)."""


def hot(rng: Draws) -> Trace:
    seen, loop = watch(rng), fed(rng)
    looks = start(rng, seen)
    hot_for = rng.uniform(*rng.ranges.hot)
    for _ in range(int(long(rng) // 10)):
        looks += seen.steady(loop.steady(), 10, throttled=rng.random() < hot_for)
    return Trace(looks, 1.0, facts(loop, rng), cost=hot_for * HALF_CLOCK)


def cap_too_small(rng: Draws) -> Trace:
    """Its allocator is refused, gives back what it keeps, and tries again."""
    share = rng.choice([0.1, 0.2, 0.3, 0.5, 1.0])
    seen, loop = watch(rng, share, noise=0.03 * share), fed(rng)
    pace = Pace(share * rng.uniform(0.7, 1.0), loop.steady().cpu)
    looks, often = start(rng, seen), rng.uniform(0.02, 0.4)
    for _ in range(int(long(rng) // 10)):
        again = rng.random() < often
        held = rng.uniform(0.8, 0.9) if again else rng.uniform(0.96, 1.0)
        looks += seen.steady(pace, 10, memory_mib=held * seen.cap_mib, refused=int(again))
    return Trace(looks, share, facts(loop))


def crowded_out(rng: Draws) -> Trace:
    """The device takes turns between programs that never stop, whatever their shares are."""
    others = rng.choice([1, 2])
    share = rng.uniform(*rng.ranges.crowded)
    mine = 1.0 / (1 + others)
    seen = watch(rng, share, noise=0.02, neighbours=1.0 - mine, above=1.0 - mine - (1.0 - share))
    kind = rng.choice(list(WorkType))
    looks = start(rng, seen) + seen.steady(Pace(mine, 0.2), long(rng))
    return Trace(looks, share, facts(type=kind), cost=1.0 - mine / share)


def starved(rng: Draws) -> Trace:
    """Loaders use all the CPU there is, and batches come too slowly."""
    limit = float(rng.choice([2, 4, 8]))
    slow = rng.uniform(*rng.ranges.slow)
    code = rng.uniform(0.02, 0.1)
    workers = int(limit) + rng.randint(0, 4)
    loop = Loop(1.0, code, slow * limit, 0.0, workers, limit)
    pace = loop.steady()
    seen = watch(rng, noise=rng.uniform(0, 0.03))
    busy_cpu = Pace(pace.busy, pace.cpu * rng.uniform(0.9, 1.0))
    looks = start(rng, seen) + seen.steady(busy_cpu, long(rng))
    return Trace(looks, 1.0, facts(loop, rng), cost=loop.cost)


def slow_disks(rng: Draws) -> Trace:
    workers, limit = rng.randint(1, 4), cores(rng)
    slow = rng.uniform(*rng.ranges.slow) * workers
    reads = rng.uniform(0.6, 0.95)
    loop = Loop(1.0, 0.05, slow * (1 - reads), slow * reads, workers, limit, rng.random() < 0.5)
    seen = watch(rng, noise=rng.uniform(0, 0.03), ram=rng.uniform(*rng.ranges.ram))
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng), cost=loop.cost)


def few_workers(rng: Draws) -> Trace:
    """Too few of them, or none, beside cores that nobody uses."""
    workers, limit = rng.choice([0, 1, 2]), cores(rng)
    slow = rng.uniform(*rng.ranges.slow) * max(workers, 1)
    loop = Loop(1.0, 0.05, slow, 0.0, workers, limit, rng.random() < 0.5)
    seen = watch(rng, noise=rng.uniform(0, 0.03), ram=rng.uniform(*rng.ranges.ram))
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng), cost=loop.cost)


def slow_code(rng: Draws) -> Trace:
    """Python between kernels."""
    loop = Loop(1.0, rng.uniform(*rng.ranges.code), 0.1, 0.0, 2, cores(rng), rng.random() < 0.5)
    seen = watch(rng, noise=rng.uniform(0, 0.03))
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng), cost=1.0 - loop.kernels / loop.step)


def stalls(rng: Draws) -> Trace:
    """A buffer is filled, used up, and filled again."""
    seen, loop = watch(rng), fed(rng)
    period, still = rng.uniform(40, 240), rng.uniform(*rng.ranges.still)

    def phases() -> Iterator[tuple[float, Pace]]:
        while True:
            length = period * rng.uniform(0.8, 1.2)
            yield length * (1 - still), loop.steady()
            yield length * still, Pace(rng.choice([0.0, 0.03]), 0.2, 0.1)

    looks = start(rng, seen) + seen.mixed(phases(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng), cost=still)


def single_precision(rng: Draws) -> Trace:
    """On a device that tells what its tensor cores do."""
    seen, loop = watch(rng), fed(rng)
    seen.always["tensor"] = rng.uniform(0.0, 0.02)
    looks = start(rng, seen) + seen.steady(loop.steady(), long(rng))
    return Trace(looks, 1.0, facts(loop, rng, capability=9.0, gpu_model="NVIDIA H100 80GB HBM3"))


def mixed_precision(rng: Draws) -> Trace:
    trace = single_precision(rng)
    tensor = rng.uniform(0.12, 0.6)
    looks = [Look(**{**_fields(each), "tensor": tensor}) for each in trace.looks]
    return Trace(looks, 1.0, trace.facts)


def _fields(look: Look) -> dict[str, Any]:
    return {name: getattr(look, name) for name in Look.__slots__}


def small_service(rng: Draws) -> Trace:
    """A small model, on a GPU or half of one."""
    share = rng.choice([0.4, 0.5, 0.75, 1.0])
    seen = watch(rng, share, memory=rng.uniform(0.04, 0.12) / share, noise=0.01)
    kind = facts(type=WorkType.SERVICE, name="deployment/api")
    return Trace(service_looks(rng, seen, rng.uniform(0.02, 0.15)), share, kind)


def small_notebook(rng: Draws) -> Trace:
    seen = watch(rng, memory=rng.uniform(1024, 16_384) / DEVICE_MIB, noise=0.01)
    looks = notebook_looks(rng, seen, 25, rng.uniform(0.05, 0.5))
    return Trace(looks, 1.0, facts(type=WorkType.INTERACTIVE, idle_timeout=60 * MINUTE))


def service_takes_all(rng: Draws) -> Trace:
    """A server that keeps all memory for its cache, and has few requests."""
    seen = watch(rng, memory=rng.uniform(0.93, 0.99), noise=0.01)
    looks = service_looks(rng, seen, rng.uniform(0.05, 0.5))
    return Trace(looks, 1.0, facts(type=WorkType.SERVICE, takes_all=True))


def small_batches(rng: Draws) -> Trace:
    """Kernels so short that launching them takes about as long, perhaps with a core or two."""
    limit = rng.choice([1.0, 2.0, cores(rng)])
    loop = Loop(1.0, rng.uniform(0.5, 1.2), 0.1, 0.0, 2, limit, rng.random() < 0.5)
    share = rng.choice([0.1, 0.15, 0.2, 1.0])
    seen = watch(rng, share, memory=rng.uniform(0.05, 0.4), noise=rng.uniform(0, 0.05) * share)
    pace = loop.steady()
    pace = Pace(pace.busy * share, pace.cpu)
    return Trace(start(rng, seen) + seen.steady(pace, long(rng)), share, facts(loop))


SILENT = frozenset[RuleName]()
EITHER = frozenset({RuleName.ADD_WORKERS, RuleName.CODE_BOUND})


def only(*rules: RuleName) -> frozenset[RuleName]:
    return frozenset(rules)


KINDS = (
    WorkKind("well fed", well_fed, SILENT),
    WorkKind("its loaders just keep up", just_fed, SILENT),
    WorkKind("on a share of the right size", on_a_share, SILENT),
    WorkKind("beside a busy neighbour", beside_a_busy_neighbour, SILENT),
    WorkKind("long to load", long_to_load, SILENT),
    WorkKind("evaluation and checkpoints", with_pauses, SILENT),
    WorkKind("mixed precision", mixed_precision, SILENT),
    WorkKind("gang in step", gang, SILENT),
    WorkKind("takes all memory, works", takes_all_and_works, SILENT),
    WorkKind("notebook in use", notebook, SILENT),
    WorkKind("service that fills its share", service, SILENT),
    WorkKind("too young", too_young, SILENT),
    WorkKind("use unknown", use_unknown, SILENT),
    WorkKind("never on the GPU", never, only(RuleName.GPU_NEVER_USED)),
    WorkKind("left alone", left_alone, only(RuleName.GPU_IDLE)),
    WorkKind("hot", hot, only(RuleName.THROTTLED)),
    WorkKind("cap too small", cap_too_small, only(RuleName.MEMORY_TIGHT)),
    WorkKind("crowded out", crowded_out, only(RuleName.CONTENDED)),
    WorkKind("starved by its CPU", starved, only(RuleName.DATA_BOUND)),
    WorkKind("slow disks", slow_disks, only(RuleName.ADD_WORKERS, RuleName.DATA_BOUND), "disks"),
    WorkKind("too few workers", few_workers, EITHER),
    WorkKind("slow code", slow_code, EITHER),
    WorkKind("stalls", stalls, only(RuleName.STOP_AND_GO)),
    WorkKind("one pod behind", behind, only(RuleName.SCALING_INEFFICIENT)),
    WorkKind("single precision", single_precision, only(RuleName.NO_TENSOR_CORES)),
    WorkKind("small service", small_service, only(RuleName.OVERSIZED)),
    WorkKind("small notebook", small_notebook, only(RuleName.OVERSIZED)),
    WorkKind("service takes all memory", service_takes_all, only(RuleName.OVERSIZED)),
    WorkKind("small batches", small_batches, only(RuleName.SMALL_BATCH, RuleName.OVERSIZED)),
)
