"""The planning loop: when something that matters changed, plan once and hand out the decisions.

A cycle is synchronous: snapshot, plan, charge, submit; nothing can change under it. After one that
placed pods the next is at least ``cycle_seconds`` away: most of a cycle's cost does not depend on
how many pods it places, so a burst is planned together, while the first pod of a burst never waits.
Each cycle begins by checking that no device is above its capacity; if one is, the newest pods above
it are evicted before anything else is placed. A plan that raises ends nothing: the object that
makes it raise is looked for and quarantined (``core.quarantine``), and the rest is planned.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan, Reason, Wait
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import RESERVE_AFTER_SECONDS, PlanInput, Thinner
from gpu_scheduler.core.quarantine import ObjectRef, ObjectType, find_faulty
from gpu_scheduler.core.steps import step_seconds
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime import planner_log
from gpu_scheduler.runtime.binding.binder import Binder
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.dump import Dump, dump_of
from gpu_scheduler.runtime.eviction.preemption import Preemptor
from gpu_scheduler.runtime.jobs.doubting import expire
from gpu_scheduler.state.cluster_state import ClusterState

log = logging.getLogger(__name__)

_LEAST_REST_SECONDS = 0.005
_REST_FACTOR = 9.0  # planning takes at most a tenth of the time of a core …
_MAX_REST_SECONDS = 0.25  # … unless single cycles are long
_LONG_SECONDS = 0.001  # a cycle whose steps are counted though it changed nothing
_NONE_FAULTY_SECONDS = 1.0  # before another try, where no object is to blame


@dataclass(frozen=True, slots=True)
class PlanningRules:
    """How it is decided.

    Attributes:
        packing: see ``PlanInput``.
        consolidate: see ``PlanInput``.
        reserve_after_seconds: see ``PlanInput``.
        preemption_policy: see ``PlanInput``.
        may_start: whether waiting pods of a job are to be placed at all.
        make: told of a job of which a pod that does not exist has a place.
        look: told of jobs that nobody gives way to before somebody has looked at them.
        take_places: has pods take places that are kept for them, before each plan.
        blind: whether something that is planned with cannot be seen; then nothing is planned.
        decide: ``core.plan``.
    """

    packing: Packing = Packing.FRAGMENTATION
    consolidate: bool = False
    reserve_after_seconds: float = RESERVE_AFTER_SECONDS
    preemption_policy: PreemptionPolicy = STRICT
    may_start: Callable[[JobKey], bool] = lambda job: True
    make: Callable[[JobKey], None] = lambda job: None
    look: Callable[[Sequence[JobKey]], None] = lambda jobs: None
    take_places: Callable[[], None] = lambda: None
    blind: Callable[[], bool] = lambda: False
    decide: Callable[[PlanInput, PlannerCache], Plan] = plan


@dataclass(frozen=True, slots=True)
class Times:
    """When cycles are, and what they took.

    Attributes:
        cycle_seconds: least time between cycles.
        clock: monotonic seconds.
        now: epoch seconds, only ever more.
        observe_seconds: told how long each cycle took, and each step of its plan: nothing of
            these where the cycle was short and changed nothing, as they cost as much as a step.
    """

    cycle_seconds: float
    clock: Callable[[], float]
    now: Callable[[], float]
    observe_seconds: Callable[[float, Sequence[float]], None] = lambda seconds, steps: None


class Planning:
    """Plans whenever woken and something changed."""

    def __init__(
        self,
        state: ClusterState,
        binder: Binder,
        preemption: Preemptor,
        last: LastPlan,
        rules: PlanningRules,
        times: Times,
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            binder: carries out placements.
            preemption: carries out evictions.
            last: what each plan said is put there.
            rules: how it is decided.
            times: when cycles are, and what they took.
        """
        self._state = state
        self._binder = binder
        self._preemption = preemption
        self._last = last
        self._rules = rules
        self._cache = PlannerCache(times.clock)
        self._quarantine = last.quarantine
        self._cycle_seconds = times.cycle_seconds
        self._observe = times.observe_seconds
        self._clock = times.clock
        self._now = times.now
        self._thinner = Thinner()
        self._trouble: PlanInput | None = None  # what the last cycle could not plan
        self._again_at: float | None = None  # epoch seconds
        self._planned_version = -1
        self.paused = False  # no more cycles: the replica is about to end

    async def run(self) -> NoReturn:
        """Plan for ever."""
        while True:
            await self._sleep()
            self._state.changes.some.clear()
            changed = expire(self._state, self._clock())
            changed |= self._state.changes.version != self._planned_version
            changed |= self._again_at is not None and self._again_at <= self._now()
            started = self._clock()
            changed |= self._is_due(self._quarantine.next_trial())
            placed = 0
            try:
                idle = self.paused or self._rules.blind()
                placed = self.cycle() if changed and not idle else 0
                if self._trouble is not None:
                    trouble, self._trouble = self._trouble, None
                    await self._search(trouble)
            except Exception:
                unexpected("planning", "a cycle")
                await self._pause()
            await asyncio.sleep(self._rest_seconds(self._clock() - started, placed))

    def cycle(self) -> int:
        """One planning cycle; answers how many pods it placed.

        What raises leaves it nowhere: ``run`` looks for the faulty object before it plans again.
        """
        started = self._clock()
        self._rules.take_places()
        self._planned_version = self._state.changes.version
        if self._above_capacity():
            self._planned_version = -1
            self._state.changes.some.set()
            return 0
        gone = self._quarantine.gone()
        given, error = self._input(gone), None
        trial = self._quarantine.trial(gone)
        try:
            result = self._rules.decide(given.without(gone, self._thinner), self._cache)
        except Exception as found:
            error = found
        if error is not None and trial:  # then it is one of these, most likely
            self._cache = PlannerCache(self._clock)
            for ref in trial:
                self._put_in_quarantine(ref, error, gone)
            trial, error = set(), None
            try:
                result = self._rules.decide(given.without(gone, self._thinner), self._cache)
            except Exception as found:
                error = found
        if error is not None:
            self._cache = PlannerCache(self._clock)
            self._trouble = given.without(gone, Thinner()).frozen()
            unexpected("planning", "a plan: looking for the object that it is about", error)
            return 0
        self._quarantine.clear(trial)
        self._carry_out(result, {job.key for job in given.jobs if job.gang is not None})
        news = self._take_over(result, given, gone)
        self._last.cycles += 1
        took, readings = self._clock() - started, self._cache.readings
        worth = result.assignments or result.evicts or took >= _LONG_SECONDS
        self._observe(took, step_seconds(readings) if worth else ())
        planner_log.write(self._last.cycles, given, result, readings, news)
        return len(result.assignments)

    def dump(self) -> Dump:
        """What a cycle would plan with now."""
        self._rules.take_places()
        gone = self._quarantine.gone()
        given = self._input(gone).without(gone, Thinner())
        return dump_of(given, self._cache.workload)

    def _above_capacity(self) -> bool:
        """Such devices take nothing in any case, so planning goes on when a look fails."""
        try:
            return self._preemption.relieve()
        except Exception:
            unexpected("planning", "devices above their capacity")
            return False

    def _input(self, gone: set[ObjectRef]) -> PlanInput:
        """What there is to plan with. An object that cannot be read is quarantined and left out."""
        state, projects, jobs = self._state, {}, []
        for name in state.projects.records:
            if ObjectRef(ObjectType.PROJECT, name) in gone:
                continue
            try:
                project = state.planner_project(name)
            except Exception as error:
                self._put_in_quarantine(ObjectRef(ObjectType.PROJECT, name), error, gone)
                continue
            if project is not None:
                projects[name] = project
        for key in state.waiting.keys():
            if ObjectRef(ObjectType.JOB, key) in gone:
                continue
            try:
                job = state.waiting_job(key) if self._rules.may_start(key) else None
            except Exception as error:
                self._put_in_quarantine(ObjectRef(ObjectType.JOB, key), error, gone)
                continue
            if job is not None:
                jobs.append(job)
        reservations = tuple(self._last.reservations.values())
        return PlanInput(
            state.snapshot(),
            projects,
            jobs,
            state.running_pods,
            reservations,
            self._now(),
            self._rules.reserve_after_seconds,
            self._rules.consolidate,
            self._rules.preemption_policy,
            self._last.memory,
            self._rules.packing,
        )

    def _put_in_quarantine(
        self, ref: ObjectRef, error: BaseException, gone: set[ObjectRef]
    ) -> None:
        if ref not in gone:
            unexpected("planning", f"{ref.type} {ref.name}: set aside", error)
            self._quarantine.put(ref, error)
            gone.add(ref)

    def _carry_out(self, result: Plan, gangs: set[JobKey]) -> None:
        state, failed = self._state, set[JobKey]()
        for decision in result.assignments:
            if decision.job in failed:
                continue  # the members of a gang stand and fall together
            pod = state.waiting.pod(decision.pod)
            try:
                if pod is None:
                    raise RuntimeError(f"planned a pod that does not wait: {decision.pod}")
                prospective = state.waiting.prospective(decision.pod) is not None
                state.decisions.assume(decision)
                if prospective:
                    self._rules.make(decision.job)
                else:
                    self._binder.submit(decision, pod, gang=decision.job in gangs)
            except Exception as error:
                failed.add(decision.job)
                if state.waiting.prospective(decision.pod) is None:
                    state.forget(decision.pod, pod)
                state.decisions.give_back(decision.job)
                self._put_in_quarantine(ObjectRef(ObjectType.JOB, decision.job), error, set())
        try:
            self._preemption.carry_out(result.evicts)
        except Exception:
            unexpected("planning", f"{len(result.evicts)} evictions")
        self._rules.look(result.looks)

    async def _search(self, given: PlanInput) -> None:
        """Set aside what makes this raise. Others run between two questions."""
        error: BaseException | None = None
        search = find_faulty(
            sorted(node.name for node in given.cluster.nodes),
            given.owners(),
            sorted(given.projects),
        )
        try:
            kept = next(search)
            while True:
                await asyncio.sleep(0)
                found = self._raises(given.only(kept))
                error = found or error
                kept = search.send(found is not None)
        except StopIteration as done:
            ref: ObjectRef | None = done.value
        if ref is not None and error is not None:
            self._put_in_quarantine(ref, error, set())
        else:  # it has gone by itself, or no object is to blame
            log.error("no object found that makes planning raise; planning again")
            await self._pause()
        self._planned_version = -1
        self._state.changes.some.set()

    async def _pause(self) -> None:
        """No object is to blame: begin anew, in a while."""
        self._cache = PlannerCache(self._clock)
        self._planned_version = -1
        await asyncio.sleep(_NONE_FAULTY_SECONDS)
        self._state.changes.some.set()

    def _raises(self, given: PlanInput) -> Exception | None:
        try:
            self._rules.decide(given, PlannerCache())
        except Exception as error:
            return error
        return None

    def _rest_seconds(self, took_seconds: float, placed: int) -> float:
        """Time until the next cycle may begin: long cycles leave the loop to others, too."""
        least = self._cycle_seconds if placed else _LEAST_REST_SECONDS
        return max(least, min(_REST_FACTOR * took_seconds, _MAX_REST_SECONDS))

    def _take_over(self, result: Plan, given: PlanInput, gone: set[ObjectRef]) -> set[JobKey]:
        last, assumed = self._last, self._state.decisions.assumed
        # Until a pod is bound its room stays promised: the write may still fail.
        kept = {uid: each for uid, each in last.reservations.items() if uid in assumed}
        last.reservations = kept | {each.pod: each for each in result.reservations}
        last.memory = result.memory
        last.shares_milli = result.shares_milli
        self._again_at = result.again_at
        last.shares_by_model_milli = result.shares_by_model_milli
        own = self._waits_in_quarantine(given, gone)
        news = last.take(result.waits, own, self._quarantine.nodes())
        for job in news:
            self._state.changes.touch(job)
        return news

    def _waits_in_quarantine(self, given: PlanInput, gone: set[ObjectRef]) -> dict[JobKey, Wait]:
        """What is said of jobs that are quarantined, and of those of a project that is."""
        keys = {JobKey(each.name) for each in gone if each.type is ObjectType.JOB}
        waits = {key: self._quarantine.job(key) for key in keys if self._state.workloads.get(key)}
        for job in given.jobs:
            if why := self._quarantine.project(job.project):
                waits[job.key] = f"GPUProject {job.project} is {why}"
        return {key: Wait(key, Reason.INVALID, why, 1) for key, why in waits.items()}

    def _is_due(self, at: float | None) -> bool:
        return at is not None and at <= self._clock()

    async def _sleep(self) -> None:
        expiries = self._state.waiting.next_expiry(), self._quarantine.next_trial()
        waits = [expiry - self._clock() for expiry in expiries if expiry is not None]
        if self._again_at is not None:
            waits.append(self._again_at - self._now())
        try:
            async with asyncio.timeout(max(0.0, min(waits)) + 0.01 if waits else None):
                await self._state.changes.some.wait()
        except TimeoutError:
            pass
