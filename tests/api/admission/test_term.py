"""A placing write of any other term than that of the LimitRange is refused, on both paths.

The operator cannot leave its term out; what places nothing is not judged, and without a LimitRange
nobody's pods but ours wait.
"""

import json
import time
from typing import Any

import pytest
from msgspec import convert
from tests.api.admission.objects import (
    ALLOCATION,
    GATE,
    LEADER,
    PATH,
    PROJECT,
    RELEASE,
    TERM,
    binding,
    created,
    lead,
    pod,
    pods,
    refused,
    tries,
    wait_until,
)
from tests.api.caller import Answer, Caller

from cluster import Running
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.gate import ungate
from gpu_scheduler.kube.objects import Pod

BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
JOB = "of-terms"
JOBS = f"/apis/batch/v1/namespaces/{PROJECT}/jobs"
GRANTS = [DeviceAllocation(0, "GPU-0", 500, 20224)]


@pytest.fixture(scope="module", autouse=True)
def job(admin: Caller) -> None:
    """The Job whose pods these are, which no controller looks after."""
    template = pod(PROJECT, restartPolicy="Never")
    spec = {"template": {"spec": template["spec"]}, "managedBy": "example.com/nobody"}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": JOB}, "spec": spec}
    answer = admin.create(JOBS, body)
    assert answer.ok, answer.message


def of_job(editor: Caller, **spec: Any) -> dict[str, Any]:
    body = pod(PROJECT, **spec)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "controller": True}
    uid = editor.get(f"{JOBS}/{JOB}").body["metadata"]["uid"]
    body["metadata"]["ownerReferences"] = [{**owner, "uid": uid}]
    return body


def bind(operator: Caller, editor: Caller, term: str | None, path: str | None = "bind") -> Answer:
    return binding_of(operator, ungated(editor), term, path)


def release(
    operator: Caller, editor: Caller, term: str | None, path: str | None = "gate"
) -> Answer:
    return release_of(operator, gated(editor), term, path)


def ungated(editor: Caller) -> str:
    return created(editor, pod(PROJECT, schedulerName="gpu-scheduler"))


def gated(editor: Caller) -> str:
    return created(editor, of_job(editor, schedulingGates=[{"name": GATE}]))


def binding_of(operator: Caller, where: str, term: str | None, path: str | None = "bind") -> Answer:
    name = where.rpartition("/")[2]
    return operator.create(pods(PROJECT, f"{name}/binding"), binding(name, term, path))


def release_of(operator: Caller, where: str, term: str | None, path: str | None = "gate") -> Answer:
    made = convert(operator.get(where).body, Pod)
    write = ungate(made, "node-0", GRANTS, more={} if term is None else {TERM: term})
    body: Any = dict(write.body)
    if path != "gate":
        body["metadata"] = {**body["metadata"], "labels": {} if path is None else {PATH: path}}
    return operator.send(write.method, write.path, body, write.content_type)


WRITES = pytest.mark.parametrize("write", [bind, release])


@pytest.mark.parametrize(("make", "place"), [(ungated, binding_of), (gated, release_of)])
def test_the_term_of_who_leads_may_place_and_stays_on_the_pod(
    operator: Caller, editor: Caller, term: str, make: Any, place: Any
) -> None:
    where = make(editor)
    answer = place(operator, where, term)
    assert answer.ok, answer.message
    assert operator.get(where).body["metadata"]["annotations"][TERM] == term


@WRITES
@pytest.mark.parametrize("old", ["leader-a/2", "leader-b/3", "/3", ""])
def test_any_other_term_is_refused(
    operator: Caller, editor: Caller, term: str, write: Any, old: str
) -> None:
    answer = write(operator, editor, old)
    assert answer.status == 403
    assert "ValidatingAdmissionPolicy 'gpu-scheduler-term'" in answer.message
    assert f"{TERM}: {old} is over; LimitRange gpu-scheduler-leader has {term}" in answer.message


@WRITES
def test_the_next_leader_makes_the_last_ones_term_void(
    admin: Caller, operator: Caller, editor: Caller, term: str, write: Any
) -> None:
    lead(admin, operator, "leader-b", 4)
    assert write(operator, editor, term).status == 403
    assert write(operator, editor, "leader-b/4").ok


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({TERM: "leader-a/2"}, "came after it: a leader takes the next term"),
        ({TERM: "leader-b/3"}, "came after it: a leader takes the next term"),
        ({TERM: "leader-b"}, "is no term"),
        ({TERM: "leader-b/four"}, "is no term"),
        ({TERM: "/4"}, "is no term"),
        ({}, "is no term"),
    ],
    ids=["an earlier one", "the same again", "no number", "a word", "no holder", "none"],
)
def test_nobody_takes_a_term_that_is_over(
    admin: Caller, operator: Caller, term: str, annotations: dict[str, Any], said: str
) -> None:
    for who in (operator, admin):
        found = who.get(LEADER).body
        meta = {**found["metadata"], "annotations": annotations}
        spec = {"limits": []}
        answer = who.send("PUT", LEADER, {**found, "metadata": meta, "spec": spec})
        assert answer.status == 422, answer
        assert said in answer.message
    assert tries(operator, term).status == 404


def test_a_term_may_be_written_again_as_it_is(operator: Caller, term: str) -> None:
    found = operator.get(LEADER).body
    assert (answer := operator.send("PUT", LEADER, found)).ok, answer.message
    assert tries(operator, term).status == 404


def test_the_operator_leads_by_one_object_of_one_name(
    admin: Caller, operator: Caller, term: str
) -> None:
    kind = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}}
    body: dict[str, Any] = {**kind, "metadata": {"name": "other"}}
    answer = operator.create(LEADER.rpartition("/")[0], body)
    assert refused(answer), answer
    assert "only gpu-scheduler-leader" in answer.message
    found = operator.get(LEADER).body
    limits = [{"type": "Pod", "max": {"cpu": "1m"}}]
    answer = operator.send("PUT", LEADER, {**found, "spec": {"limits": limits}})
    assert refused(answer), answer
    assert "which limits nothing" in answer.message
    elsewhere = LEADER.replace(f"namespaces/{RELEASE}", f"namespaces/{PROJECT}")
    body["metadata"] = {"name": "gpu-scheduler-leader"}
    assert operator.create(elsewhere.rpartition("/")[0], body).status == 403


def test_the_policy_is_in_force_again_after_its_bindings_were_gone(
    cluster: Running, admin: Caller, operator: Caller
) -> None:
    """A chart that is removed and installed again: ADR 0043 tells what happened with a Lease."""
    lead(admin, operator, "leader-a", 3)
    named = [f"validatingadmissionpolicybinding/{RELEASE}-term-{path}" for path in ("bind", "gate")]
    saved = json.loads(cluster.kubectl("get", *named, "--output=json").stdout)["items"]
    cluster.kubectl("delete", *named)
    try:
        wait_until(lambda: tries(operator, "nobody/1").status == 404)
        time.sleep(5)  # until the API server has let go of the parameter
    finally:
        for binding_ in saved:
            binding_["metadata"] = {k: binding_["metadata"][k] for k in ("name", "labels")}
            assert admin.create(BINDINGS, binding_).ok
    wait_until(lambda: tries(operator, "nobody/1").status == 403)
    lead(admin, operator, "leader-b", 4)
    assert tries(operator, "leader-a/3").status == 403
    assert admin.send("DELETE", LEADER).ok


def test_the_policy_knows_the_term_at_once_when_the_api_server_comes_back(
    cluster: Running, operator: Caller, term: str
) -> None:
    """With a parameter of a kind of ours every fourth restart refused all placing for 30 s."""
    for _ in range(4):
        cluster.stop_process("kube-apiserver", kill=True)
        cluster.start_process("kube-apiserver")
        cluster.wait_ready()
        wait_until(lambda: tries(operator, term).status == 404, seconds=25)


@WRITES
@pytest.mark.parametrize("leave_out", ["term", "label", "both", "other label"])
def test_the_operator_cannot_leave_its_term_out(
    operator: Caller, editor: Caller, term: str, write: Any, leave_out: str
) -> None:
    right = "bind" if write is bind else "gate"
    wrong = "gate" if write is bind else "bind"
    label = {"label": None, "both": None, "other label": wrong}.get(leave_out, right)
    answer = write(operator, editor, None if leave_out in ("term", "both") else term, label)
    assert refused(answer), answer.message
    assert "the account of the GPU scheduler" in answer.message


def test_a_gated_pod_that_says_it_is_placed_already_opens_no_way_around(
    operator: Caller, editor: Caller, term: str
) -> None:
    body = of_job(editor, schedulingGates=[{"name": GATE}])
    body["metadata"]["labels"] = {PATH: "gate"}
    where = created(editor, body)
    early = {"metadata": {"annotations": {TERM: "leader-a/2"}}}
    assert refused(operator.patch(where, early))
    assert operator.patch(where, {"metadata": {"annotations": {TERM: term}}}).ok
    answer = release_of(operator, where, term, "gate")  # the same value: it sets no term
    assert refused(answer), answer.message


def test_a_pod_that_was_placed_is_free_from_then_on(
    admin: Caller, operator: Caller, editor: Caller, term: str
) -> None:
    where = gated(editor)
    assert release_of(operator, where, term, "gate").ok
    lead(admin, operator, "leader-b", 4)
    assert admin.patch(where, {"metadata": {"annotations": {"own": "1"}}}).ok
    assert admin.patch(f"{where}/status", {"status": {"message": "odd"}}).ok
    assert operator.patch(where, {"metadata": {"annotations": {ALLOCATION: "{}"}}}).ok


def test_without_a_leader_no_other_pod_waits(
    admin: Caller, operator: Caller, editor: Caller
) -> None:
    wait_until(lambda: "no params found" in tries(operator, "a/1").message)
    refusal = bind(operator, editor, "a/1")
    assert refusal.status == 422
    assert "ValidatingAdmissionPolicy 'gpu-scheduler-term'" in refusal.message
    name = created(editor, pod(PROJECT)).rpartition("/")[2]
    stock = {**binding(name, None), "metadata": {"name": name}}
    assert admin.create(pods(PROJECT, f"{name}/binding"), stock).ok
    assert admin.patch(pods(PROJECT, name), {"metadata": {"annotations": {"own": "1"}}}).ok
    waiting = gated(editor)
    assert admin.patch(waiting, {"metadata": {"annotations": {"own": "1"}}}).ok
