"""Watches a play and counts its figures; what each of them means is said in ``figures``.

What waits is seen after each plan: a *unit* is a gang, or one pod of a job that is none. One that
can start on no empty cluster, or only above its project's limit, asks for nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

from tests.perf.sharing import room
from tests.perf.sharing.figures import Figures
from tests.perf.sharing.player import Index, SharingPlayer, key_of
from tests.perf.sharing.share_windows import WINDOW_SECONDS, ShareWindows
from tests.perf.sharing.workload import SimulatedJob, Workload

from gpu_scheduler.core.model.decision import Assignment, Evict, Plan
from gpu_scheduler.core.model.quota import ceiling_milli, nominal_milli
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.queue.order import job_rank

HIGH, NORMAL = 70, 50  # priorities from which on one counts as such


class UnitKey(NamedTuple):
    """A unit: its job, and the number of its first pod."""

    job: JobKey
    first: int


@dataclass(slots=True)
class _NominalWait:
    """A unit waits inside its project's quota."""

    since: float
    seen: float  # the last time
    could_be_helped: bool  # then
    helpable: float = 0.0  # seconds

    def pass_to(self, now: float) -> None:
        """Time has passed, in which nothing changed."""
        if self.could_be_helped:
            self.helpable += now - self.seen
        self.seen = now


class Counting:
    """Watches a play."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._from = workload.counted_from
        self.figures = Figures()
        self._used = self._lost = 0.0
        self._at = 0.0
        self._held: dict[ProjectName, int] = {}  # since the last plan
        self._shares: Mapping[ProjectName, int] = {}
        self._short: dict[ProjectName, int] = {}  # of projects that wait
        self._windows = ShareWindows(self._from)
        self._owed: dict[UnitKey, _NominalWait] = {}
        self._startable: dict[tuple[object, ...], bool] = {}
        self._times: Counter[str] = Counter()  # that an index was evicted
        self._lost_to: dict[str, JobKey] = {}
        self._ended: list[Index] = []

    def planned(self, player: SharingPlayer, result: Plan) -> None:
        """See ``Watcher``."""
        self._pass(player.now)
        held = Counter(player.cluster.allocated_milli)
        self._held = dict(held)
        for run in player.running_pods.leaving():
            held[run.project] -= run.milli
        for evict in result.evicts:
            self._count_eviction(player, evict)
        self._count_starts(player, result.assignments, held)
        self._look_at_queues(player, result.shares_milli, held)

    def ended(self, index: Index, now: float) -> None:
        """See ``Watcher``."""
        self._ended.append(index)
        self.figures.ended += now >= self._from

    def gone(self, index: Index, lost_seconds: float, now: float) -> None:
        """See ``Watcher``."""
        lost = min(lost_seconds, now - self._from)  # the rest was before counting began
        self._lost += max(0.0, lost) * index.job.pod_shape.nominal_milli

    def finish(self, player: SharingPlayer) -> Figures:
        """The play is over."""
        self._pass(player.now)
        found = self.figures
        whole = self._workload.capacity_milli * (self._workload.seconds - self._from)
        found.used_percent = 100 * self._used / whole
        found.useful_percent = 100 * (self._used - self._lost) / whole
        found.lost_percent = 100 * self._lost / self._used if self._used else 0.0
        found.most_evicted = max(self._times.values(), default=0)
        for key in tuple(self._owed):
            self._close(key, player.now)
        found.below_shares += self._windows.below()
        found.short_of_shares += self._windows.short()
        self._count_waits(player)
        return found

    def _pass(self, now: float) -> None:
        """Time has passed, in which nothing changed."""
        begin, self._at = max(self._at, self._from), now
        if begin < now:
            self._used += sum(self._held.values()) * (now - begin)
            self._windows.add(begin, now, self._shares, self._held, self._short)

    def _count_eviction(self, player: SharingPlayer, evict: Evict) -> None:
        name = player.running[evict.pod].name
        if player.now >= self._from:
            self.figures.evictions[evict.reason] += 1
            self.figures.repeats += self._lost_to.get(name) == evict.beneficiary
            self._times[name] += 1
        self._lost_to[name] = evict.beneficiary

    def _count_starts(
        self,
        player: SharingPlayer,
        assignments: Sequence[Assignment],
        held: Mapping[ProjectName, int],
    ) -> None:
        """Of units that were owed their place, or would have been."""
        started = [player.running[each.pod] for each in assignments]
        before = Counter(held)
        for index in started:
            before[index.job.project] -= index.job.pod_shape.nominal_milli
        for unit in _units(started):
            job = unit[0].job
            before[job.project] += len(unit) * job.pod_shape.nominal_milli
            key = UnitKey(key_of(job), unit[0].number)
            if key in self._owed:
                self._close(key, player.now)
            elif before[job.project] <= nominal_milli(self._workload.projects[job.project]):
                self._note_delay(0.0, 0.0, player.now)

    def _look_at_queues(
        self,
        player: SharingPlayer,
        shares: Mapping[ProjectName, int],
        held: Mapping[ProjectName, int],
    ) -> None:
        """Who is owed its place; and by how much each project that waits is short."""
        projects, now = self._workload.projects, player.now
        inside = {name: nominal_milli(each) - held[name] for name, each in projects.items()}
        below = {name: share - held[name] for name, share in shares.items()}
        short: dict[ProjectName, int] = {}
        free: dict[ProjectName, list[int]] = {}
        owed: set[UnitKey] = set()
        for unit in self._waiting(player):
            job = unit[0].job
            name, milli = job.project, len(unit) * job.pod_shape.nominal_milli
            short.setdefault(name, 0)
            if milli <= below.get(name, 0):
                below[name] -= milli
                short[name] += milli
            if milli > inside[name]:
                continue
            inside[name] -= milli
            key = UnitKey(key_of(job), unit[0].number)
            owed.add(key)
            if name not in free:
                runs = (index.run for index in player.running.values() if index.run is not None)
                live = (player.running_pods.get(run.uid) or run for run in runs)
                free[name] = room.without_borrowers(player.cluster, projects, live, name)
            known = self._owed.setdefault(key, _NominalWait(now, now, could_be_helped=False))
            known.pass_to(now)
            known.could_be_helped = room.fits(player.cluster, free[name], job.pod_shape, len(unit))
        for key in [key for key in self._owed if key not in owed]:
            self._close(key, now)
        over = sum(max(0, held[name] - share) for name, share in shares.items())
        all_short = sum(short.values())
        if all_short > over:  # the rest is short because of where others are, not of what they hold
            short = {name: milli * over // all_short for name, milli in short.items()}
        self._shares = shares
        self._short = short

    def _waiting(self, player: SharingPlayer) -> Iterator[list[Index]]:
        """Units that could start some time, in the order of the queues."""
        waiting = player.waiting
        for key in sorted(waiting, key=lambda key: job_rank(player.known[key])):
            indexes = [waiting[key][number] for number in sorted(waiting[key])]
            job = indexes[0].job
            if self._can_start(job) and not (job.gang and len(indexes) < len(job.runs)):
                yield from _units(indexes)

    def _can_start(self, job: SimulatedJob) -> bool:
        """Whether a unit of the job fits on the empty cluster, inside its project's limit."""
        pods = len(job.runs) if job.gang else 1
        key = job.project, job.pod_shape, pods
        if (known := self._startable.get(key)) is None:
            empty, project = self._workload.cluster, self._workload.projects[job.project]
            known = room.fits(empty, empty.free_milli, job.pod_shape, pods)
            known = known and pods * job.pod_shape.nominal_milli <= ceiling_milli(project)
            self._startable[key] = known
        return known

    def _close(self, key: UnitKey, now: float) -> None:
        """A unit has its place, or is owed none any more."""
        owed = self._owed.pop(key)
        owed.pass_to(now)
        self._note_delay(now - owed.since, owed.helpable, now)

    def _note_delay(self, seconds: float, helpable: float, now: float) -> None:
        if now >= self._from:
            self.figures.guarantee_delays.append(seconds)
            self.figures.helpable_delays.append(helpable)

    def _count_waits(self, player: SharingPlayer) -> None:
        last = max(self._from, self._workload.seconds - WINDOW_SECONDS)
        here = chain.from_iterable(each.values() for each in player.waiting.values())
        for index in here:
            index.waited += player.now - index.since
        here = chain.from_iterable(each.values() for each in player.waiting.values())
        for index in chain(self._ended, player.running.values(), here):
            if self._from <= index.arrived <= last and self._can_start(index.job):
                for name in _classes(index.job):
                    self.figures.waits.setdefault(name, {})[index.name] = index.waited


def _units(indexes: Sequence[Index]) -> Iterator[list[Index]]:
    """Pods of gangs together, others alone; those of a gang follow one another."""
    for job, some in groupby(indexes, key=lambda index: index.job):
        if job.gang:
            yield sorted(some, key=lambda index: index.number)
        else:
            yield from ([index] for index in some)


def _classes(job: SimulatedJob) -> Iterator[str]:
    if job.interactive:
        yield "interactive"
    high, normal = job.priority >= HIGH, job.priority >= NORMAL
    yield "high" if high else "normal" if normal else "low"
