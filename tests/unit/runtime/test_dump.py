"""A dump, replayed, gives the plan of the moment at which it was made."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.core.affinity.builders import Standing
from tests.unit.core.golden.history import History

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import VERSION, DumpError, canonical, dump_of, read, written
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore

HISTORIES, CHUNK, CYCLES = 200, 25, 30
SOON = PreemptionPolicy(5.0, 5.0, 0.0, 60.0)


class RecordedHistory(History):
    """A history whose pods on nodes are counted as in the operator, and whose inputs are kept."""

    def _standing(self) -> Standing:
        store = self.__dict__.setdefault("store", PlacedPodStore(lambda _: ProjectName("a")))
        for uid, (pod, running_pod) in self.running.items():
            store.put(uid, self.who[pod.name], running_pod.node, ending=uid in self.going)
        for uid in [each for each in store._seats if each not in self.running]:
            store.drop(PodUID(uid))
        store.begin()
        return store  # type: ignore[no-any-return]

    def plan(self) -> Plan:
        session = self.session
        assert session is not None
        given, workload = self.given(), session.workload
        dump = dump_of(given, workload) if self._is_worth_it() else None
        result = plan(given, session)
        if dump is not None:
            self.dumped, self.planned = b"".join(written(dump)), result
        return result

    def _is_worth_it(self) -> bool:
        """In the second half, and where pods are leaving rather than where none are."""
        cycle = self.__dict__["cycles"] = self.__dict__.get("cycles", 0) + 1
        if cycle <= CYCLES // 2 or not (self.going or not self.__dict__.get("left")):
            return False
        self.__dict__["left"] = bool(self.going)
        return True


def middle(seed: int) -> RecordedHistory:
    """A history, with what one of its plans was made from, and the plan."""
    history = RecordedHistory.of(20_000 + seed)
    assert isinstance(history, RecordedHistory)
    history.preemption_policy = (STRICT, FAIR, SOON)[seed % 3]
    for _ in history.plans(CYCLES):
        pass
    return history


@pytest.mark.long
@pytest.mark.parametrize("number", range(HISTORIES // CHUNK))
def test_from_the_middle_of_a_history_a_dump_gives_the_same_plan_to_the_byte(number: int) -> None:
    seen = set[str]()
    for seed in range(number * CHUNK, (number + 1) * CHUNK):
        history = middle(seed)
        given = read(history.dumped).to_input()
        assert canonical(plan(given)) == canonical(history.planned)
        again = b"".join(written(dump_of(given, PlannerCache().workload)))
        assert again == history.dumped
        seen |= {"reservations"} if given.reservations else set()
        seen |= {"going"} if any(True for _ in given.running_pods.leaving()) else set()
        seen |= {"memory"} if given.memory.nominal_since else set()
    assert seen == {"reservations", "going", "memory"}


REPLAY = """
import sys
from gpu_scheduler.core.plan import plan
from gpu_scheduler.runtime.dump import canonical, read
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(canonical(plan(read(data).to_input())))
"""


@pytest.mark.long(always=True)
def test_another_interpreter_with_other_hashes_makes_the_same_plan() -> None:
    for seed in (3, 4, 5):
        history = middle(seed)
        found = subprocess.run(
            [sys.executable, "-c", REPLAY],
            input=history.dumped,
            capture_output=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
        )
        assert found.stdout == canonical(history.planned)


def empty() -> bytes:
    history = RecordedHistory.of(1)
    given = PlanInput(history.cluster(), {}, ())
    return b"".join(written(dump_of(given, PlannerCache().workload)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dump: dump.update(version=VERSION + 1), f"version {VERSION + 1} of dumps, by"),
        (lambda dump: dump.pop("given"), "missing required field `given`"),
        (lambda dump: dump["given"].update(now="noon"), r"got `str` - at `\$\.given\.now`"),
        (lambda dump: dump["given"]["cluster"]["free_mib"].append(1), "do not belong together"),
        (lambda dump: dump["given"]["cluster"].update(first=[0]), "do not belong together"),
    ],
)
def test_a_file_of_another_version_and_a_damaged_one_say_what_is_wrong(
    change: object, says: str
) -> None:
    dump = json.loads(empty())
    change(dump)  # type: ignore[operator]
    with pytest.raises(DumpError, match=says):
        read(json.dumps(dump).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", empty()[:-10]])
def test_what_is_no_dump_is_refused(data: bytes) -> None:
    with pytest.raises(DumpError):
        read(data)


def test_the_readable_form_of_a_plan_is_json(tmp_path: Path) -> None:
    found = json.loads(canonical(plan(read(empty()).to_input())))
    assert found["assignments"] == found["waits"] == []
