"""Why something waits: the verdict is the operator's own, the rest is what the planner knows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.simulate.scenes import (
    NOW,
    cluster,
    holds,
    node,
    share_pods,
    subject,
    waits,
    why,
)
from tests.unit.simulate.test_what_if import project

from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.api.states import STATES
from gpu_scheduler.kube import errors
from gpu_scheduler.simulate import verdict
from gpu_scheduler.simulate.cluster_objects import Objects, Ref
from gpu_scheduler.simulate.explanation import explain
from gpu_scheduler.simulate.explanation_text import lines
from gpu_scheduler.simulate.operator_rules import DEFAULT, from_deployment

FULL = (("a", "0", 1000), ("a", "1", 1000), ("b", "0", 1000), ("b", "1", 1000))
Json = dict[str, Any]


def screen(found: Json, width: int | None = None) -> str:
    return "\n".join(line.text for line in lines(found, NOW, width))


def lacks(found: Json) -> dict[str, list[str]]:
    return {each["node"]: each["lacks"] for each in found["candidates"]}


def never_read() -> Objects:
    raise AssertionError("the cluster was read")


def test_a_used_up_quota_names_who_holds_it_and_until_when() -> None:
    objects = cluster(
        project(quota=2, weight=0),
        *holds("low", ("a", "0", 1000), ("b", "0", 1000), timeLimitSeconds=7200),
        *waits("train", "WaitingForQuota"),
    )
    found = why(objects, "train")
    assert found["project"]["allocated"] == "2" and found["project"]["quota"] == "2"
    assert not found["place"]["insideQuota"]
    assert [(h["job"], h["gpu"]) for h in found["holders"]] == [("team-a/low", "2")]
    assert found["holders"][0]["endsBy"] == "2026-01-01T02:00:00Z"
    assert lacks(found) == {"a": [], "b": []}, "it is not nodes that are missing"
    assert found["estimate"]["kind"] == "time limits"
    assert found["estimate"]["startsBy"] == "2026-01-01T02:00:00Z"
    assert "which its weight 0 forbids" in screen(found)


def test_no_free_gpu_says_how_much_each_node_is_short_of() -> None:
    objects = cluster(
        *holds("low", *FULL[:3], ("b", "1", 800)), *waits("train", gpu=0.5, priority=50)
    )
    found = why(objects, "train")
    assert [each["node"] for each in found["candidates"]] == ["b", "a"], "the closest first"
    assert found["candidates"][0]["missingGPU"] == "0.3"
    assert lacks(found) == {
        "b": ["GPU 1 has 0.2 free of 0.5 wanted"],
        "a": ["GPU 0 has 0 free of 0.5 wanted"],
    }
    assert found["estimate"]["kind"] == "unknown" and found["estimate"]["startsBy"] is None
    assert "0.3 GPU more free" in found["estimate"]["text"]


def test_time_limits_of_those_on_a_gpu_bound_the_start() -> None:
    objects = cluster(
        *holds("long", *FULL[:2]),
        *holds("short", *FULL[2:], timeLimitSeconds=5400),
        *waits("train", gpu=1, priority=50),
    )
    found = why(objects, "train")["estimate"]
    assert (found["kind"], found["startsBy"], found["node"]) == (
        "time limits",
        "2026-01-01T01:30:00Z",
        "b",
    )
    assert "team-a/short" in found["text"] and "team-a/long" not in found["text"]


def test_pieces_that_are_enough_in_sum_are_told_one_by_one() -> None:
    objects = cluster(
        *holds("low", ("a", "0", 700), ("a", "1", 700), *FULL[2:], gpu=0.7),
        *waits("train", "Fragmented", gpu=0.5),
    )
    found = why(objects, "train")["candidates"][0]
    assert (found["node"], found["freeGPU"], found["missingGPU"]) == ("a", "0.6", "0.2")
    assert found["lacks"] == ["GPU 0 has 0.3 free of 0.5 wanted"]


def test_missing_cpu_is_told_beside_gpus_that_are_free() -> None:
    """Room that is reserved for the job itself does not count as taken from it."""
    objects = cluster(
        *holds("low", ("a", "0", 500), ("b", "1", 500), gpu=0.5),
        *waits("train", "WaitingForResources", gpu=0.5, cpu="64"),
    )
    found = why(objects, "train")
    assert lacks(found) == {"a": ["CPU (needs 64, 63 free)"], "b": ["CPU (needs 64, 63 free)"]}
    assert {each["freeGPU"] for each in found["candidates"]} == {"1.5"}


def test_nodes_that_never_do_come_last_and_say_why() -> None:
    template = {"nodeSelector": {"zone": "x"}, "containers": [{"name": "main", "image": "x"}]}
    taint = {"key": "only", "value": "them", "effect": "NoSchedule"}
    objects = cluster(
        node("c", labels={"zone": "x"}),
        node("d", labels={"zone": "x"}, cordoned=True),
        node("e", labels={"zone": "x"}, taints=(taint,)),
        *holds("low", ("c", "0", 1000), ("c", "1", 1000)),
        *waits("train", image=None, template={"spec": template}, gpu=0.5, priority=50),
    )
    found = why(objects, "train")
    order = [each["node"] for each in found["candidates"]]
    assert order[:2] == ["c", "d"] and set(order[2:]) == {"a", "b", "e"}
    said = lacks(found)
    assert said["a"] == ["without the labels of the node selector (zone=x)"]
    assert said["e"] == ["with the taint only=them:NoSchedule, not tolerated"]
    assert "cordoned" in said["d"][0]


def test_a_node_whose_self_test_failed_is_told_as_such() -> None:
    objects = cluster(*waits("train", "WaitingForResources", gpu=0.5))
    for body in objects.of("Pod"):
        body["spec"]["initContainers"] = [{"name": "gpu-scheduler-cap"}]
    device = {"uuid": "GPU-0", "index": 0, "model": "NVIDIA A100", "usableMiB": 40448}
    status = {"devices": [{**device, "healthy": True}], "failedIsolation": ["interposer"]}
    for name in "ab":
        objects.put("GPUNode", {"metadata": {"name": name, "uid": name}, "status": status})
    found = why(objects, "train")
    assert lacks(found) == dict.fromkeys("ab", ["failed the self-test of isolation: interposer"])
    assert "failed the self-test of isolation: interposer" in screen(found)


def test_gpus_of_another_model_are_told_as_such() -> None:
    objects = cluster(*waits("train", "Unsatisfiable", gpu=1, gpuModels=["H100"]))
    found = why(objects, "train")
    assert lacks(found)["a"] == ["other GPUs: NVIDIA-A100-PCIE-40GB"]
    assert found["estimate"]["kind"] == "never"


def test_what_is_before_it_is_told_in_the_order_of_the_queue() -> None:
    objects = cluster(
        *holds("low", *FULL, type="interactive"),
        *waits("old", gpu=1, created="2025-12-31T00:00:00Z"),
        *waits("urgent", gpu=2, priority=90),
        *waits("notebook", gpu=0.5, type="interactive"),
        *waits("new", gpu=0.5, created="2026-01-01T00:30:00Z"),
        *waits("train", gpu=0.5),
    )
    found = why(objects, "train")
    told = [(each["position"], each["job"], each["asks"]) for each in found["before"]]
    assert told == [
        (1, "team-a/notebook", "0.5 of a GPU"),
        (2, "team-a/urgent", "2 GPUs"),
        (3, "team-a/old", "1 GPU"),
    ]
    assert found["place"]["position"] == 4
    text = screen(found)
    assert text.index("notebook") < text.index("urgent") < text.index("train <-")


def test_a_long_queue_is_cut_on_the_screen_alone() -> None:
    many = [each for i in range(25) for each in waits(f"j{i:02}", gpu=0.5)]
    found = why(cluster(*holds("low", *FULL), *many, *waits("train", gpu=0.5)), "train")
    assert len(found["before"]) == 25
    text = screen(found)
    assert "15 more" in text and "j09" in text and "j10" not in text and "train <-" in text


def test_projects_are_told_in_the_order_of_their_turns() -> None:
    poor = [project("team-b", quota=2), *waits("theirs", gpu=3)]
    for each in poor[1:]:
        each["metadata"]["namespace"] = "team-b"
    objects = cluster(
        project(quota=2), *holds("low", *FULL[:3]), *poor, *waits("train", gpu=2, priority=50)
    )
    found = why(objects, "train")
    assert found["project"]["borrowed"] == "1"
    assert "team-a" in [each["name"] for each in found["projects"]]


def test_who_gives_way_is_told_with_the_planners_reason() -> None:
    objects = cluster(*holds("low", *FULL, priority=10), *waits("train", gpu=1, priority=90))
    found = why(objects, "train")["estimate"]
    assert found["kind"] == "evictions"
    (victim,) = found["givesWay"]
    assert victim["job"] == "team-a/low" and "its priority is 90" in victim["message"]


@pytest.mark.parametrize("reason", ["PlacementRefused", "StartTimedOut"])
@pytest.mark.parametrize("busy", [True, False])
def test_who_could_not_start_for_a_reason_of_its_own_is_promised_nothing(
    reason: str, busy: bool
) -> None:
    others = holds("low", *FULL, priority=10) if busy else []
    asks: Json = {"doubtful": True, "gpu": 1, "priority": 90}
    objects = cluster(*others, *waits("train", reason, "a policy says no", **asks))
    found = why(objects, "train")
    assert found["verdict"]["message"] == "a policy says no"
    assert found["estimate"]["kind"] == "unknown" and found["estimate"]["givesWay"] == []
    assert "nobody gives way to it until what refuses it has changed" in screen(found)


def test_who_lacks_something_is_promised_nothing() -> None:
    lacks = "needs 1 GPU; nobody gives way to it: there is no PersistentVolumeClaim data"
    waiting = waits("train", "WaitingForGPU", lacks, gpu=1, priority=90)
    found = why(cluster(*holds("low", *FULL, priority=10), *waiting), "train")
    assert found["estimate"]["kind"] == "unknown" and found["estimate"]["givesWay"] == []


def test_what_is_due_by_a_promise_is_estimated_and_said_to_be_so() -> None:
    objects = cluster(
        project(quota=0),
        project("team-b", quota=4),
        *holds("low", *FULL),
        *_in_team_b(waits("train", gpu=1)),
    )
    (job,) = [each for each in objects.of("GPUJob") if each["metadata"]["name"] == "train"]
    pods = [each for each in objects.of("Pod") if each["metadata"]["name"] == "train-0-x"]
    asked = type(subject(objects, "gpujob", "low"))("gpujob", "team-b", "train", job, pods)
    found = explain(asked, lambda: objects, NOW)["estimate"]
    assert found["kind"] == "promises", found
    assert found["startsBy"] > NOW and "from now" in found["text"]
    assert {each["job"] for each in found["givesWay"]} == {"team-a/low"}


def _in_team_b(bodies: list[Json]) -> list[Json]:
    for each in bodies:
        each["metadata"]["namespace"] = "team-b"
    return bodies


def test_a_gang_is_asked_about_as_a_whole() -> None:
    objects = cluster(
        *holds("low", FULL[0], FULL[3]),
        *waits("train", "WaitingForGang", gpu=1, pods=3, gang=True),
    )
    found = why(objects, "train")
    assert found["place"]["gang"] == 3 and found["place"]["asks"] == "3 GPUs"
    assert "Nodes for one of its pods" in screen(found)
    assert "all of its pods at the same time" in found["estimate"]["text"]


def test_a_node_says_how_much_of_a_gang_it_has_room_for() -> None:
    few = cluster(*waits("train", "Unsatisfiable", gpu=0.05, pods=5, gang=True))
    found = lacks(why(few, "train"))
    assert list(found.values()) == [["room for 2 of 5 pods at once, none of which share a GPU"]] * 2
    shared = cluster(*waits("train", "X", gpu=0.75, pods=5, gang=True, distinctGPUs=False))
    found = lacks(why(shared, "train"))
    assert list(found.values()) == [["room for 2 of 5 pods at once"]] * 2


def test_a_job_that_runs_in_part_tells_of_the_pod_that_waits() -> None:
    some = holds("train", FULL[0])
    more = waits("train", gpu=1, pods=2, phase="Running")
    objects = cluster(*holds("low", *FULL[1:]), *more, *some[2:])
    found = why(objects, "train")
    assert found["verdict"]["phase"] == "Running" and found["verdict"]["reason"]
    assert found["place"]["asks"] == "1 GPU" and found["candidates"][0]["missingGPU"] == "1"


def test_what_the_plan_starts_now_is_said_to_start() -> None:
    found = why(cluster(*waits("train", "WaitingForPlan", gpu=0.5)), "train")["estimate"]
    assert found["kind"] == "now" and found["node"] in ("a", "b")


@pytest.mark.parametrize("phase", ["Suspended", "Succeeded", "Failed"])
def test_what_does_not_wait_is_told_without_reading_the_cluster(phase: str) -> None:
    objects = cluster(*waits("train", "SomeReason", "some words", phase=phase))
    found = explain(subject(objects, "gpujob", "train"), never_read, NOW)
    assert found["estimate"] is None and found["candidates"] == []
    text = screen(found)
    assert "SomeReason" in text and "some words" in text
    if phase != "Succeeded":
        helps = {"Suspended": "kubectl gpu resume train", "Failed": "kubectl gpu retry train"}
        assert helps[phase] in text


def test_an_invalid_job_is_told_what_its_status_says() -> None:
    objects = cluster(*waits("train", "Invalid", "spec.gpu: too much"))
    found = explain(subject(objects, "gpujob", "train"), never_read, NOW)
    assert "spec.gpu: too much" in screen(found) and found["estimate"] is None


def test_a_job_that_runs_says_where_and_since_when() -> None:
    found = explain(subject(cluster(*holds("low", *FULL[:2])), "gpujob", "low"), never_read, NOW)
    assert found["verdict"]["since"] == "2026-01-01T00:00:00Z"
    assert [each["node"] for each in found["verdict"]["places"]] == ["a", "a"]
    assert "It runs for 60 min" in screen(found)


def test_of_a_deployment_the_first_pod_that_waits_is_told() -> None:
    said = "WaitingForGPU: needs 0.5 of a GPU"
    pods = share_pods("web", waiting=2, message=said)
    found = why(cluster(*holds("low", *FULL), *pods), "web", "deployment")
    assert found["object"]["pod"] == "web-5d4f-0"
    assert found["verdict"]["reason"] == "WaitingForGPU"
    assert found["verdict"]["message"] == "needs 0.5 of a GPU"
    assert found["place"]["type"] == "interactive"
    assert found["candidates"] and found["holders"][0]["job"] == "team-a/low"


def test_a_deployment_that_runs_says_so() -> None:
    asked = subject(cluster(*share_pods("web", "a", "b")), "deployment", "web")
    found = explain(asked, never_read, NOW)
    assert found["verdict"]["phase"] == "Running" and found["verdict"]["holdsGPU"] == "1"


def test_what_stands_on_a_pod_that_holds_a_share_is_told() -> None:
    said = "no GPUJob owns this pod any more: it runs on and holds 0.5 GPUs of a"
    assert {*verdict._WARNINGS} <= {*ConditionType}
    pods = share_pods("web", "a", "b")
    for kind, status in (("Owned", "False"), ("Protected", "True"), ("Advice", "False")):
        told = {"type": f"gpu-scheduler.io/{kind}", "status": status, "message": said + kind}
        pods[0]["status"].setdefault("conditions", []).append(told)
    for kind, name in (("pod", "web-5d4f-0"), ("deployment", "web")):
        found = explain(subject(cluster(*pods), kind, name), never_read, NOW)
        assert found["verdict"]["note"] == f"{said}Owned"
        assert f"  {said}Owned" in screen(found)
        assert "web-5d4f-0 on a: 0.5 of device 0 (20480 MiB)" in screen(found)


def test_a_pod_without_a_share_is_said_to_be_none_of_ours() -> None:
    (body,) = share_pods("web", waiting=1)
    body["spec"]["schedulerName"] = "default-scheduler"
    body["metadata"] |= {"labels": {}, "annotations": {}}
    found = explain(subject(cluster(body), "pod", "web-5d4f-0"), never_read, NOW)
    assert "asks for no share" in found["verdict"]["note"]


def test_a_pod_of_a_job_without_a_word_is_told_the_jobs() -> None:
    objects = cluster(*holds("low", *FULL), *waits("train", message="of the job", gpu=0.5))
    found = why(objects, "train-0-x", "pod")
    assert found["verdict"]["message"] == "of the job" and found["candidates"]


def test_a_missing_right_leaves_the_verdict_and_names_the_right() -> None:
    objects = cluster(*holds("low", *FULL), *waits("train", message="so it is"))

    def refuse() -> Objects:
        raise errors.Forbidden(403, "Forbidden", "nodes is forbidden: cannot list nodes")

    found = explain(subject(objects, "gpujob", "train"), refuse, NOW)
    assert found["verdict"]["message"] == "so it is" and found["candidates"] == []
    assert "cannot list nodes" in screen(found).splitlines()[-1]


def test_a_job_without_a_status_is_said_to_be_unknown_to_the_operator() -> None:
    objects = cluster(*waits("train"))
    for body in objects.of("GPUJob"):
        del body["status"]  # type: ignore[attr-defined]
    found = why(objects, "train")
    assert found["verdict"]["reason"] == "" and "kubectl gpu check" in found["verdict"]["note"]
    assert found["estimate"]["kind"] == "now"


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["Pending", "Running", "Suspended", "Succeeded", "Failed", "Odd", ""]),
    st.sampled_from([*(state.reason for state in STATES), "Unheard"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=60),
    st.sampled_from(["gpujob", "pod"]),
)
def test_the_verdict_is_always_that_of_the_status(
    phase: str, reason: str, message: str, kind: str
) -> None:
    objects = cluster(*holds("low", *FULL), *waits("train", reason, message, phase=phase, gpu=0.5))
    found = why(objects, "train" if kind == "gpujob" else "train-0-x", kind)
    assert (found["verdict"]["reason"], found["verdict"]["message"]) == (reason, message)
    assert json.loads(json.dumps(found)) == found
    text = screen(found)
    assert message in text
    if kind == "gpujob":
        said = f"is {phase}" if phase else "has no phase yet"
        assert text.startswith(f"GPUJob team-a/train {said}" + (f": {reason}" if reason else ""))


@settings(max_examples=20, deadline=None)
@given(st.integers(30, 200))
def test_the_screen_fits_its_width_and_loses_no_word(width: int) -> None:
    name = "a-job-with-a-name-that-is-as-long-as-people-make-them"
    objects = cluster(
        *holds("low", *FULL),
        *waits(f"{name}-before", gpu=0.5, created="2025-12-31T00:00:00Z"),
        *waits(name, gpu=0.5, message="needs 0.5 of a GPU; no GPU is free"),
    )
    found = why(objects, name)
    folded = screen(found, width)
    assert max(map(len, folded.splitlines())) <= max(width, 72)

    def squeezed(text: str) -> str:
        return "".join(text.split())

    assert sorted(squeezed(folded)) == sorted(squeezed(screen(found)))


def test_a_cluster_that_the_planner_cannot_take_leaves_the_verdict() -> None:
    objects = cluster(*holds("low", *FULL), *waits("train", message="so it is"))
    job: Any = objects.bodies[Ref("Job", "team-a", "low")]
    del job["metadata"]["uid"]
    found = why(objects, "train")
    assert found["verdict"]["message"] == "so it is" and found["candidates"] == []
    assert "KeyError" in found["notShown"]


def test_odd_objects_break_nothing() -> None:
    objects = cluster(*holds("low", *FULL), *waits("train", gpu=0.5))
    body: Any = objects.bodies[Ref("GPUJob", "team-a", "train")]
    body["status"] = {"phase": 7, "reason": None, "queuePosition": "x", "conditions": ["y"]}
    pod: Any = objects.bodies[Ref("Pod", "team-a", "low-0-x")]
    pod["metadata"]["annotations"]["gpu-scheduler.io/allocation"] = "not ours"
    assert why(objects, "train")["verdict"]["reason"] == ""
    assert screen(why(objects, "low"))


def test_the_rules_of_the_operator_count() -> None:
    """By strict rules what outranks others waits for no patience."""
    new = "2026-01-01T00:59:50Z"
    low, urgent = holds("low", *FULL, priority=10), waits("train", gpu=1, priority=90, created=new)
    for name, kind in (("fair", "promises"), ("strict", "evictions")):
        objects = cluster(*low, *urgent)
        env = [{"name": "GPUSCHED_PREEMPTION", "value": name}, {"name": "X", "valueFrom": {}}]
        spec = {"template": {"spec": {"containers": [{"env": env}]}}}
        rules = from_deployment({"spec": spec})
        asked = subject(objects, "gpujob", "train")
        found = explain(asked, lambda objects=objects: objects, NOW, lambda rules=rules: rules)  # type: ignore[misc]
        assert found["estimate"]["kind"] == kind


def test_rules_that_cannot_be_read_are_the_defaults() -> None:
    env = [{"name": "GPUSCHED_PREEMPTION", "value": "unheard"}]
    spec = {"template": {"spec": {"containers": [{"env": env}]}}}
    assert from_deployment({"spec": spec}) == from_deployment({}) == DEFAULT
