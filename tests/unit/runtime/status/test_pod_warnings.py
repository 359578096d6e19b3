"""What agents warn of, on pods that ask by themselves: when it comes, what it says, its end."""

from typing import Any

from tests.unit.runtime.status.test_pod_conditions import RecordedEvents
from tests.unit.state.builders import half, make_pod
from tests.unit.state.nodes.test_agents import FINE, OVER, SILENT, devices
from tests.unit.state.pods.test_shares import asking, state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.status.pod_warnings import PodWarnings
from gpu_scheduler.state.nodes.agents import SeenContainer

UID = "uid-web-1"
PROTECTED, HEALTHY = "gpu-scheduler.io/Protected", "gpu-scheduler.io/DevicesHealthy"
BARE = SeenContainer(0, "unprotected", message="no library is loaded")


class Case:
    """A pod on the first device of node a, and what the agent there says."""

    def __init__(self, *reports: SeenContainer, **pod: Any) -> None:
        self.state, self.said, self.version = state(), RecordedEvents(), 1
        self.warnings = PodWarnings(
            self.state,
            self.said,  # type: ignore[arg-type]
            now=lambda: "now",
        )
        self.report()
        self.pod(**pod)
        self.warnings.touched()
        if reports:
            self.report(*reports)

    def pod(self, *conditions: dict[str, str], **pod: Any) -> None:
        self.version += 1
        pod = {"node": "a", "devices": half("GPU-0"), "phase": "Running", **pod}
        self.state.pod_changed(asking(version=self.version, conditions=conditions, **pod))

    def report(self, *reports: SeenContainer, **of_the_first: Any) -> None:
        found = {PodUID(UID): reports} if reports else {}
        self.state.nodes.reported("a", devices(**of_the_first), found)

    def due(self) -> list[str]:
        return list(self.warnings.touched())

    def says(self) -> list[dict[str, str]]:
        """Conditions that are written now, as the watch then shows the pod with them."""
        (uid,) = self.due()
        before, after = self.warnings.status(uid)
        patch = {
            k: after.get(k) for k in before.keys() | after.keys() if before.get(k) != after.get(k)
        }
        if not patch:
            return []
        write = self.warnings.write(uid, uid, patch, after)
        assert write.path.endswith("/namespaces/team-a/pods/web-1/status")
        assert write.body["metadata"] == {"uid": UID}
        self.warnings.written(uid, before, after)
        written: list[dict[str, str]] = write.body["status"]["conditions"]
        return written


def bad(kind: str, reason: str, message: str, since: str = "now") -> dict[str, str]:
    return {
        "type": kind,
        "status": "False",
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def test_a_pod_about_which_all_is_well_is_told_nothing() -> None:
    case = Case()
    case.pod()
    case.report(FINE)
    assert case.due() == []


def test_one_above_its_cap_says_so_until_it_is_over() -> None:
    case = Case(OVER)
    told = bad(PROTECTED, "OverCap", "web-1: too much")
    assert case.says() == [told]
    assert case.said.events == [("Pod", "Warning", "OverCap", "web-1: too much")]
    case.pod({**told, "lastTransitionTime": "before"})
    assert case.says() == [], "it is there"
    case.report(FINE)
    assert case.says() == [{"$patch": "delete", "type": PROTECTED}]
    case.pod()
    assert case.due() == []
    assert len(case.said.events) == 1


def test_another_reason_is_news_and_other_numbers_are_none() -> None:
    case = Case(OVER)
    told = bad(PROTECTED, "OverCap", "web-1: too much", since="before")
    case.pod(told)
    case.report(SeenContainer(0, "interposer", OVER.over_cap_since, "even more"))
    assert case.says() == []
    case.report(BARE)
    other = bad(PROTECTED, "Unprotected", "web-1: no library is loaded", since="before")
    assert case.says() == [other], "it is False since then"


def test_nothing_is_known_of_what_a_silent_agent_said() -> None:
    case = Case(OVER)
    case.pod(bad(PROTECTED, "OverCap", "web-1: too much"))
    case.due()
    case.state.nodes.agent_silent("a", SILENT)
    assert case.says() == [{"$patch": "delete", "type": PROTECTED}]


def test_a_device_that_falls_ill_is_told_and_its_recovery_too() -> None:
    case = Case()
    case.report(healthy=False, illness="XID 79")
    (told,) = case.says()
    assert (told["type"], told["reason"]) == (HEALTHY, "DeviceUnhealthy")
    assert "GPU-0 of a is unhealthy: XID 79" in told["message"]
    case.pod(told)
    case.report()
    assert case.says() == [{"$patch": "delete", "type": HEALTHY}]


def test_a_report_that_comes_before_the_watch_says_that_it_runs_is_not_lost() -> None:
    case = Case(OVER, phase="Pending")
    assert case.due() == [], "whose containers do not run has no use of memory"
    case.pod()
    assert case.says() == [bad(PROTECTED, "OverCap", "web-1: too much")]


def test_other_pods_are_told_of_elsewhere() -> None:
    case = Case()
    case.state.pod_changed(make_pod(node="a", devices=half("GPU-0"), phase="Running"))
    case.state.nodes.reported("a", devices(), {PodUID("uid-job-0"): (OVER,)})
    assert case.due() == []


def test_what_somebody_wrote_on_a_pod_that_is_not_ours_stays() -> None:
    """The API server would refuse that we take it away, again and again."""
    forged = bad(PROTECTED, "OverCap", "so I say")
    case = Case()
    case.state.pod_changed(asking("theirs", node="a", conditions=(forged,), phase="Running"))
    case.state.pod_changed(make_pod(job=None, node="a", conditions=(forged,), phase="Running"))
    case.state.nodes.report_gone("a")
    assert case.due() == []
    assert case.warnings.uid("uid-theirs") is case.warnings.uid("uid-job-0") is None


def test_a_pod_that_is_gone_or_has_ended_is_no_business_of_this() -> None:
    case = Case(OVER)
    case.pod(phase="Failed", ran=True)
    assert case.warnings.uid(UID) is None
    case.state.pod_gone(PodUID(UID))
    assert case.due() == []
    assert case.warnings.uid(UID) is None


def test_a_pod_that_goes_while_it_is_told_is_told_nothing_more() -> None:
    case = Case(OVER)
    before, after = case.warnings.status(UID)
    case.state.pod_gone(PodUID(UID))
    case.warnings.written(UID, before, after)
    assert case.said.events == []
