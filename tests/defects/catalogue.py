"""The defects: slips that a careful reviewer fears, one at a time, none of which ends at import.

``first`` are the tests that are tried first because they are quick; if they pass, the whole tier
is. A defect whose text is not in its file exactly once is stale: say what the code became.
"""

from dataclasses import dataclass
from pathlib import Path

_OURS = "operator/gpu_scheduler"
_LIBRARY = "native/libgpucap/src"


@dataclass(frozen=True, slots=True)
class Defect:
    """A slip.

    Attributes:
        name: What it is called.
        file: Where it is, from the root of the repository.
        text: What is there now, exactly once.
        slip: What stands there instead.
        harm: What a user would see of it.
        first: Tests that are tried before the whole tier.
    """

    name: str
    file: str
    text: str
    slip: str
    harm: str
    first: tuple[str, ...]

    @property
    def tier(self) -> str:
        """Where it is looked for if the first tests do not find it."""
        return "tests/native" if self.file.startswith("native/") else "tests/unit"

    def put_into(self, root: Path) -> None:
        """Put it into a copy of the repository.

        Raises:
            ValueError: its text is not there exactly once.
        """
        path = root / self.file
        content = path.read_text()
        if (count := content.count(self.text)) != 1:
            raise ValueError(
                f"defect {self.name}: {self.file} has its text {count} times, not once; adapt"
                f" tests/defects to what the code became:\n{self.text}"
            )
        path.write_text(content.replace(self.text, self.slip))


_CORE = "tests/unit/core"

DEFECTS = (
    # core
    Defect(
        name="the-last-of-a-quota",
        file=f"{_OURS}/core/fairness/budget.py",
        text="if needs.least_milli > self.room_milli(project, held):",
        slip="if needs.least_milli >= self.room_milli(project, held):",
        harm="For a group that would take the very last of its quota nothing is kept or claimed:"
        " borrowers take its place again and again.",
        first=(
            f"{_CORE}/fit/test_placement.py",
            f"{_CORE}/fairness/test_budget.py",
            f"{_CORE}/golden",
        ),
    ),
    Defect(
        name="a-gangs-other-members",
        file=f"{_OURS}/core/fit/placement.py",
        text="room_milli is None else room_milli - rest",
        slip="room_milli is None else room_milli",
        harm="The first member of a gang takes a dear GPU, so that its quota has no room for the"
        " last one: the gang waits beside free GPUs that it could have.",
        first=(
            f"{_CORE}/test_gang_cost.py",
            f"{_CORE}/fit/test_placement.py",
            f"{_CORE}/test_accelerators.py",
            f"{_CORE}/fairness/test_budget_of_gangs.py",
            f"{_CORE}/golden",
        ),
    ),
    Defect(
        name="victims-are-not-added-up",
        file=f"{_OURS}/core/eviction/solver.py",
        text="if all(given[key] + milli <= spare[key] for key, milli in gives.items()):",
        slip="if all(milli <= spare[key] for key, milli in gives.items()):",
        harm="Several evictions together take a project below its guaranteed quota.",
        first=(
            f"{_CORE}/eviction/test_solver.py",
            f"{_CORE}/actions/test_preemption.py",
            f"{_CORE}/test_cases.py",
            f"{_CORE}/golden",
        ),
    ),
    Defect(
        name="shares-of-closed-nodes",
        file=f"{_OURS}/core/eviction/fair_share_state.py",
        text="return sum(snapshot.node_free_milli)"
        " - sum(snapshot.node_free_milli[n] for n in unschedulable)",
        slip="return sum(snapshot.node_free_milli)",
        harm="While nodes are cordoned fair shares count GPUs that nobody can have, and who borrows"
        " too much is not asked to give back.",
        first=(
            f"{_CORE}/test_closed_nodes.py",
            f"{_CORE}/actions/test_preemption.py",
            f"{_CORE}/eviction/test_deadlines.py",
            f"{_CORE}/fairness/test_fairshare.py",
            f"{_CORE}/golden",
        ),
    ),
    Defect(
        name="exactly-a-quota-is-borrowed",
        file=f"{_OURS}/core/reservation/active.py",
        text="borrowed = held > project.quota_milli",
        slip="borrowed = held >= project.quota_milli",
        harm="Room for which others were evicted goes to another project, although whoever it was"
        " freed for is inside its quota.",
        first=(
            f"{_CORE}/actions/test_new_reservations.py",
            f"{_CORE}/actions/test_preemption.py",
            f"{_CORE}/actions/test_carried_reservations.py",
            f"{_CORE}/golden",
        ),
    ),
    Defect(
        name="passed-over-for-good",
        file=f"{_OURS}/core/actions/rounds.py",
        text="                    passed.clear()",
        slip="                    pass",
        harm="A short job waits one plan longer than it has to, beside kept room that it may use,"
        " for being like one that had its turn before there was somebody to be near.",
        first=(
            f"{_CORE}/actions/test_rounds_in_kept_room.py",
            f"{_CORE}/actions/test_rounds.py",
            f"{_CORE}/actions/test_new_reservations.py",
            f"{_CORE}/actions/test_carried_reservations.py",
            f"{_CORE}/golden",
        ),
    ),
    # runtime
    Defect(
        name="news-while-resting",
        file=f"{_OURS}/runtime/planning.py",
        text="await asyncio.sleep(self._rest_seconds(self._clock() - started, placed))",
        slip="await asyncio.sleep(self._rest_seconds(self._clock() - started, placed))\n"
        "            self._state.changes.some.clear()",
        harm="A job that comes within milliseconds of a plan waits until something else happens.",
        first=("tests/unit/runtime/test_planning.py", "tests/unit/runtime/test_set_aside.py"),
    ),
    Defect(
        name="a-lost-answer-is-only-read",
        file=f"{_OURS}/runtime/binding/binder.py",
        text="now = await (self._touch(meta) if unknown else self._read(meta))",
        slip="now = await self._read(meta)",
        harm="A write whose answer was lost arrives after its GPU was given to somebody else: two"
        " pods hold it.",
        first=("tests/unit/runtime/binding/test_binder.py",),
    ),
    Defect(
        name="one-try-too-few",
        file=f"{_OURS}/runtime/eviction/evictor.py",
        text="if attempt == _TRIES - 1:",
        slip="if attempt == _TRIES:",
        harm="A pod whose two disruption budgets make the API server fail keeps GPUs that are owed"
        " to others for ever.",
        first=(
            "tests/unit/runtime/eviction/test_evictor.py",
            "tests/unit/runtime/eviction/test_preemption.py",
            "tests/unit/runtime/binding/test_gang_guard.py",
        ),
    ),
    Defect(
        name="a-closed-fence-is-no-end",
        file=f"{_OURS}/runtime/common/poll.py",
        text="        except errors.NotLeader:\n            raise\n",
        slip="",
        harm="A replica that has lost its lease goes on as if it led, and only warns.",
        first=("tests/unit/runtime/common/test_poll.py",),
    ),
    # state
    Defect(
        name="unchanged-since-it-was-placed",
        file=f"{_OURS}/state/cluster_state.py",
        text="known is None or known.version > version",
        slip="known is None or known.version >= version",
        harm="A pod whose placement was refused waits no longer, and is never placed.",
        first=(
            "tests/unit/state/test_cluster_state.py",
            "tests/unit/runtime/binding/test_binder.py",
        ),
    ),
    Defect(
        name="models-are-counted-twice",
        file=f"{_OURS}/state/nodes/ledger.py",
        text="        self.held_by_model.clear()\n",
        slip="",
        harm="After each change of a node a project seems to hold more of a model than it does, and"
        " gets no more of it.",
        first=("tests/unit/state/nodes/test_unlisted.py", "tests/unit/state/nodes/test_ledger.py"),
    ),
    Defect(
        name="one-pod-too-many",
        file=f"{_OURS}/state/nodes/ledger.py",
        text="c.free_pods[n] < 1",
        slip="c.free_pods[n] < 0",
        harm="A pod takes a place on a node that has as many pods as it may: the kubelet refuses"
        " it.",
        first=(
            "tests/unit/state/test_full_nodes.py",
            "tests/unit/state/test_decisions.py",
            "tests/unit/state/queue/test_nominated.py",
        ),
    ),
    Defect(
        name="members-that-are-done",
        file=f"{_OURS}/state/queue/gangs.py",
        text="missing=max(size - len(done) - len(placed), more)",
        slip="missing=max(size - len(placed), more)",
        harm="A gang of which some members have finished waits for ever for a place for them.",
        first=("tests/unit/state/queue/test_gangs.py",),
    ),
    # agent
    Defect(
        name="well-again-not-in-a-row",
        file=f"{_OURS}/agent/watchdog.py",
        text="        state.below = 0\n        state.above += 1",
        slip="        state.above += 1",
        harm="A container that is above its cap most of the time counts as well again: no eviction"
        " and no kill.",
        first=("tests/unit/agent/test_watchdog.py",),
    ),
    Defect(
        name="the-first-look-counts",
        file=f"{_OURS}/agent/trueup.py",
        text="if len(looks) > 1 and",
        slip="if len(looks) > 0 and",
        harm="A free between two readings looks like a large context, and the tenant's next"
        " allocation is refused inside its cap.",
        first=("tests/unit/agent/test_trueup.py",),
    ),
    Defect(
        name="kib-for-mib",
        file=f"{_OURS}/agent/trueup.py",
        text="return total // MIB",
        slip="return total // 1024",
        harm="Every container above its cap is said to have got past the library.",
        first=("tests/unit/agent/test_trueup.py", "tests/native/test_agent_look.py"),
    ),
    # libgpucap
    Defect(
        name="small-ones-without-the-lock",
        file=f"{_LIBRARY}/charge.c",
        text="    lock_take(&small.lock);\n"
        "    uint64_t *sum = &small.bytes[device], have = charge_whole(*sum, PAGE);\n"
        "    *sum -= bytes;\n"
        "    charge_return(device, have - charge_whole(*sum, PAGE));\n"
        "    lock_free(&small.lock);\n",
        slip="    uint64_t *sum = &small.bytes[device], have = charge_whole(*sum, PAGE);\n"
        "    *sum -= bytes;\n"
        "    charge_return(device, have - charge_whole(*sum, PAGE));\n",
        harm="Threads that free small allocations together leave pages charged, or give back pages"
        " that are in use.",
        first=("tests/native/test_gpucap_races.py", "tests/native/test_gpucap_small.py"),
    ),
    Defect(
        name="a-mebibyte-is-small",
        file=f"{_LIBRARY}/charge.c",
        text="bytes < LARGE ? CHARGE_SMALL_STEP : PAGE",
        slip="bytes <= LARGE ? CHARGE_SMALL_STEP : PAGE",
        harm="In pieces of exactly 1 MiB a tenant takes twice its cap.",
        first=(
            "tests/native/test_gpucap_small.py",
            "tests/native/test_gpucap_rows.py",
            "tests/native/test_gpucap_limits.py",
        ),
    ),
    Defect(
        name="behind-a-hole",
        file=f"{_LIBRARY}/owned.c",
        text="if (((at - wanted) & (table.room - 1)) >= ((at - hole) & (table.room - 1)))",
        slip="if (((at - wanted) & (table.room - 1)) > ((at - hole) & (table.room - 1)))",
        harm="Some allocations are not given back when they are freed, the more the longer a"
        " program runs, until it is refused inside its cap.",
        first=("tests/native/test_gpucap_races.py", "tests/native/test_gpucap_small.py"),
    ),
)
