"""Who holds the `edit` role cannot forge, move or release an allocation; the operator can.

Every refusal names what is not allowed; stock pods notice nothing.
"""

import pytest
from tests.api.admission.objects import (
    ALLOCATION,
    ELSEWHERE,
    GATE,
    OPERATOR,
    PROJECT,
    created,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Caller


def test_the_api_server_finds_no_wrong_type_in_the_policies(admin: Caller) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def checked() -> bool:
        found = admin.get(path).body["items"]
        return bool(found) and all("typeChecking" in p.get("status", {}) for p in found)

    wait_until(checked)
    for policy in admin.get(path).body["items"]:
        assert not policy["status"]["typeChecking"].get("expressionWarnings")


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (ALLOCATION, '{"v":1,"n":"n","c":{}}'),
        (ALLOCATION, "void"),
        ("gpu-scheduler.io/c0-devices", "GPU-0"),
        ("gpu-scheduler.io/term", "me/1"),
        ("gpu-scheduler.io/c0-devices", ""),
        ("gpu-scheduler.io/checkpointed-at", "2026-01-01T00:00:00Z"),  # it has not run yet
        ("gpu-scheduler.io/c0-memory-mib", "void"),
        ("gpu-scheduler.io/cx-devices", "void"),
        ("gpu-scheduler.io/c0-devices-more", "void"),
    ],
)
def test_a_pod_with_a_forged_annotation_is_refused(
    editor: Caller, namespace: str, key: str, value: str
) -> None:
    answer = editor.create(pods(namespace), pod(namespace, annotations={key: value, "own": "1"}))
    assert refused(answer)
    assert f"metadata.annotations: {key} may be written by the GPU scheduler" in answer.message
    assert OPERATOR in answer.message


def test_whoever_may_change_a_pod_tells_when_it_was_saved(editor: Caller) -> None:
    where = created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c0-devices": "void"}))
    for value in ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", None):
        body = {"metadata": {"annotations": {"gpu-scheduler.io/checkpointed-at": value}}}
        assert (answer := editor.patch(where, body)).ok, answer.message


def test_the_harmless_default_of_a_template_may_be_created(editor: Caller) -> None:
    created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c12-devices": "void"}))


@pytest.mark.parametrize(
    ("change", "verb"),
    [
        ({ALLOCATION: "{}"}, "written"),
        ({"gpu-scheduler.io/c0-devices": "GPU-0"}, "written"),
        ({"gpu-scheduler.io/c1-devices": "void"}, "written"),
        ({"gpu-scheduler.io/c0-devices": None}, "removed"),
    ],
)
@pytest.mark.parametrize("subresource", ["", "/status"])
def test_nobody_else_changes_an_allocation(
    admin: Caller, editor: Caller, change: dict[str, str | None], verb: str, subresource: str
) -> None:
    path = created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c0-devices": "void"}))
    # The edit role does not hold pods/status; an administrator does and is refused all the same.
    who = admin if subresource else editor
    answer = who.patch(path + subresource, {"metadata": {"annotations": change}})
    assert refused(answer)
    assert f"{next(iter(change))} may be {verb} by the GPU scheduler alone" in answer.message


def test_other_annotations_of_a_placed_pod_stay_free(editor: Caller) -> None:
    path = created(editor, pod(PROJECT, annotations={"gpu-scheduler.io/c0-devices": "void"}))
    assert editor.patch(path, {"metadata": {"annotations": {"own": "1"}}}).ok
    assert editor.patch(path, {"metadata": {"labels": {"own": "1"}}}).ok


def test_the_job_controller_may_not_carry_a_forgery_in(editor: Caller) -> None:
    template = pod(PROJECT, annotations={ALLOCATION: "{}"}, restartPolicy="Never")
    template["metadata"] = {"annotations": template["metadata"]["annotations"]}
    answer = editor.create(
        f"/apis/batch/v1/namespaces/{PROJECT}/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "forged"},
            "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
        },
    )
    assert answer.ok, answer.message

    def told() -> bool:
        events = editor.get(
            f"/api/v1/namespaces/{PROJECT}/events?fieldSelector=involvedObject.name=forged"
        )
        return any(
            f"{ALLOCATION} may be written by the GPU scheduler alone" in event["message"]
            for event in events.body["items"]
        )

    wait_until(told)
    found = editor.get(pods(PROJECT) + "?labelSelector=job-name=forged")
    assert found.body["items"] == []


# Gate and node


def test_nobody_else_removes_the_gate(editor: Caller) -> None:
    gates = [{"name": GATE}, {"name": "example.com/foreign"}]
    path = created(editor, pod(PROJECT, schedulingGates=gates))
    answer = editor.patch(path, {"spec": {"schedulingGates": None}})
    assert refused(answer)
    assert f"spec.schedulingGates: {GATE} may be removed by the GPU scheduler" in answer.message
    assert editor.patch(path, {"spec": {"schedulingGates": [{"name": GATE}]}}).ok


def test_a_pod_of_our_scheduler_may_not_choose_its_node(editor: Caller) -> None:
    body = pod(PROJECT, schedulerName="gpu-scheduler", nodeName="node-0")
    answer = editor.create(pods(PROJECT), body)
    assert refused(answer)
    assert "spec.nodeName: a pod with schedulerName gpu-scheduler cannot choose" in answer.message


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeName": "node-0"},
        {"schedulerName": "gpu-scheduler"},
        {"schedulerName": "another", "nodeName": "node-0"},
    ],
)
def test_stock_pods_are_untouched(editor: Caller, spec: dict[str, str]) -> None:
    path = created(editor, pod(PROJECT, **spec))
    assert editor.patch(path, {"metadata": {"annotations": {"own": "1"}}}).ok


# Bindings


@pytest.mark.parametrize("endpoint", ["pods/{}/binding", "bindings"])
@pytest.mark.parametrize(
    ("annotations", "passes"), [({ALLOCATION: "{}"}, False), ({"own": "1"}, True), ({}, True)]
)
def test_only_a_binding_without_an_allocation_comes_from_others(
    admin: Caller, editor: Caller, endpoint: str, annotations: dict[str, str], passes: bool
) -> None:
    name = created(editor, pod(PROJECT)).rpartition("/")[2]
    path = f"/api/v1/namespaces/{PROJECT}/{endpoint.format(name)}"
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"kind": "Node", "name": "node-0"},
    }
    answer = admin.create(path, body)
    assert answer.ok is passes, answer.message
    assert refused(answer) is not passes
    assert passes or f"{ALLOCATION} in a Binding may come from" in answer.message
