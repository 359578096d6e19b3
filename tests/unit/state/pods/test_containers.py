"""What containers say is told in the kubelet's words, bounded, and costs nobody else anything."""

from typing import Any

import pytest
from tests.unit.state.builders import half, make_pod

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.state.pods.containers import KUBELET_CHARS, last_line, line
from gpu_scheduler.state.pods.pod import PodRecord, record


def status(state: dict[str, Any], name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "registry/x:1", "state": state, **more}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def placed(*statuses: Any, **settings: Any) -> PodRecord:
    return record(
        make_pod(node="a", devices=half(), **{"containerStatuses": list(statuses)} | settings)
    )


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("ErrImagePull", Reason.IMAGE_NOT_PULLED),
        ("ImagePullBackOff", Reason.IMAGE_NOT_PULLED),
        ("InvalidImageName", Reason.IMAGE_NOT_PULLED),
        ("ErrImageNeverPull", Reason.IMAGE_NOT_PULLED),
        ("CreateContainerConfigError", Reason.CONTAINER_NOT_STARTED),
        ("CreateContainerError", Reason.CONTAINER_NOT_STARTED),
        ("RunContainerError", Reason.CONTAINER_NOT_STARTED),
        ("CrashLoopBackOff", Reason.CONTAINER_NOT_STARTED),
        ("AWordOfALaterKubelet", Reason.CONTAINER_NOT_STARTED),
        ("CreatePodSandboxError", Reason.SANDBOX_NOT_CREATED),
        ("ContainerCreating", None),
        ("PodInitializing", None),
    ],
)
def test_each_word_of_the_kubelet_has_its_reason(word: str, reason: Reason | None) -> None:
    found = placed(status(waiting(word, "its sentence"))).trouble
    assert (found.reason if found else None) == reason
    assert found is None or found.message.endswith(": its sentence")


def test_an_init_container_is_named_before_those_that_wait_for_it() -> None:
    pod = placed(
        status(waiting("PodInitializing")),
        initContainerStatuses=[status(waiting("ErrImagePull"), "fetch")],
    )
    assert pod.trouble is not None and pod.trouble.message.startswith("container fetch of pod")


def test_a_pod_that_runs_has_no_trouble_to_start() -> None:
    """Its sidecar may crash; that is the pod's own affair."""
    crash = status(waiting("CrashLoopBackOff"))
    assert placed(crash, phase="Running").trouble is None


def test_statuses_that_cannot_be_read_say_nothing() -> None:
    pod = placed({"name": 7, "state": "odd"}, status({"terminated": {"exitCode": "x"}}))
    assert pod.trouble is None
    ended = placed({"name": 7}, phase="Failed").failure
    assert ended is not None and ended.reason is Reason.POD_FAILED


def test_every_text_is_bounded() -> None:
    long = "word " * 5000
    found = placed(status(waiting("ErrImagePull", long), long, image=long)).trouble
    assert found is not None and len(found.message) < KUBELET_CHARS + 500
    terminated = {"exitCode": 1, "reason": long, "message": long}
    failure = placed(status({"terminated": terminated}, long), phase="Failed").failure
    assert failure is not None and len(failure.message) < 700


def test_the_container_that_failed_first_is_the_cause() -> None:
    def ended(code: int, at: str) -> dict[str, Any]:
        return {"terminated": {"exitCode": code, "finishedAt": at, "message": f"code {code}"}}

    failure = placed(
        status(ended(143, "2026-01-01T00:00:09Z"), "late"),
        status(ended(2, "2026-01-01T00:00:05Z"), "first"),
        status(ended(0, "2026-01-01T00:00:01Z"), "well"),
        phase="Failed",
    ).failure
    assert failure is not None
    assert failure.message == "container first ended with exit code 2: code 2"
    assert failure.at == "2026-01-01T00:00:05Z"


PROXY = {"name": "proxy", "restartPolicy": "Always"}
AT = "2026-01-01T00:00:05Z"


def ends(code: int, **more: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": AT, **more}}


@pytest.mark.parametrize(
    ("ended", "reason", "said"),
    [
        (ends(1), Reason.PROGRAM_FAILED, "container main ended with exit code 1"),
        (
            ends(137, reason="OOMKilled"),
            Reason.OOM_KILLED,
            "container main ended with exit code 137",
        ),
    ],
)
@pytest.mark.parametrize("earlier", [AT, "2026-01-01T00:00:01Z"])
def test_the_end_of_a_sidecar_is_never_the_programs(
    ended: dict[str, Any], reason: Reason, said: str, earlier: str
) -> None:
    failure = placed(
        status(ended),
        init_containers=[PROXY],
        initContainerStatuses=[status(ends(143, finishedAt=earlier), "proxy")],
        phase="Failed",
    ).failure
    assert failure is not None and failure.reason is reason
    assert failure.message.startswith(said)


def test_who_is_told_to_end_in_the_second_of_a_failure_is_not_its_cause() -> None:
    """A container that somebody put there beside ours, as a mesh does, comes first in the list."""
    failure = placed(status(ends(143), "istio-proxy"), status(ends(1)), phase="Failed").failure
    assert failure is not None and failure.message == "container main ended with exit code 1"


def test_a_sidecar_that_runs_is_no_init_container_for_which_others_wait() -> None:
    runs = status({"running": {"startedAt": AT}}, "proxy")
    pod = placed(init_containers=[PROXY], initContainerStatuses=[runs], phase="Pending")
    assert pod.initializing == ""
    fetch = status({"running": {"startedAt": AT}}, "fetch")
    both = [PROXY, {"name": "fetch"}]
    pod = placed(init_containers=both, initContainerStatuses=[runs, fetch], phase="Pending")
    assert pod.initializing == "fetch"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "Traceback:\n  File x\nRuntimeError: CUDA out of memory\n",
            "RuntimeError: CUDA out of memory",
        ),
        ("10%\r50%\r\n\n  \n", "50%"),
        ("\x1b[31mred\x1b[0m\x00", "[31mred [0m"),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_of_a_log_the_last_line_counts(log: str, said: str) -> None:
    assert last_line(log, 300) == said


def test_a_line_is_cut_where_a_word_ends() -> None:
    assert line("one two three", 10) == "one two…"
    assert line("x" * 50, 10) == "x" * 9 + "…"
    assert line("short", 10) == "short"


def test_a_disruption_says_why() -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    said = placed(conditions=(target,)).disruption
    assert said == "DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"
