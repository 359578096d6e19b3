"""Whatever was written into a pod or a GPUJob before, it can be told of, end and go.

An update is judged by what it changes. The administrator of these tests stands for kubelet, Job
controller and garbage collector: the policies trust neither.
"""

import string
from itertools import islice, product
from typing import Any

import pytest
from tests.api.admission.objects import (
    ELSEWHERE,
    PROJECT,
    VISIBLE,
    created,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Caller

FINALIZER = "example.com/stay"
LABELLED = {"metadata": {"labels": {"gpu-scheduler.io/job": "x"}}}
JOBS = f"/apis/batch/v1/namespaces/{ELSEWHERE}/jobs"
# As many as 256 KiB have room for, and as the cost limit of policies lets pass in a new pod.
MOST, MANY = 87_000, 40_000


def add_ephemeral(caller: Caller, path: str, name: str, value: str) -> Any:
    container = {"name": name, "image": "example", "env": [{"name": VISIBLE, "value": value}]}
    return caller.send(
        "PATCH",
        f"{path}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [container]}},
        "application/strategic-merge-patch+json",
    )


def goes(admin: Caller, path: str) -> None:
    """What kubelet, Job controller and garbage collector do with a pod until it is gone."""
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    assert (answer := admin.patch(f"{path}/status", status)).ok, answer.message
    assert (answer := admin.send("DELETE", path, {"gracePeriodSeconds": 0})).ok, answer.message
    assert (answer := admin.patch(path, {"metadata": {"finalizers": None}})).ok, answer.message
    wait_until(lambda: admin.get(path).status == 404)


def test_a_pod_with_an_odd_ephemeral_container_ends_and_goes(admin: Caller, editor: Caller) -> None:
    body = pod(ELSEWHERE)
    body["metadata"]["finalizers"] = [FINALIZER]
    path = created(editor, body)
    assert add_ephemeral(admin, path, "odd", "all").ok, "outside of projects that is nobody's"
    assert editor.patch(path, LABELLED).ok
    assert refused(add_ephemeral(admin, path, "odder", "all"))
    assert (answer := add_ephemeral(admin, path, "harmless", "void")).ok, answer.message
    goes(admin, path)


def test_the_job_controller_counts_the_end_of_such_a_pod(admin: Caller, editor: Caller) -> None:
    container = {"name": "main", "image": "example"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"metadata": {"name": "odd"}, "spec": {"template": template, "backoffLimit": 0}}
    assert (answer := editor.create(JOBS, body)).ok, answer.message
    selector = f"{pods(ELSEWHERE)}?labelSelector=job-name=odd"
    wait_until(lambda: len(editor.get(selector).body["items"]) == 1)
    path = pods(ELSEWHERE, editor.get(selector).body["items"][0]["metadata"]["name"])
    assert add_ephemeral(admin, path, "odd", "all").ok
    assert editor.patch(path, LABELLED).ok
    status = {"status": {"phase": "Failed"}}
    assert (answer := admin.patch(f"{path}/status", status)).ok, answer.message
    wait_until(lambda: editor.get(f"{JOBS}/odd").body["status"].get("failed") == 1)
    wait_until(lambda: "finalizers" not in editor.get(path).body["metadata"])


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])
def test_a_pod_with_annotations_without_number_ends_and_goes(
    admin: Caller, editor: Caller, namespace: str
) -> None:
    for number in (MOST, MANY):
        keys = map("".join, product(string.ascii_letters + string.digits, repeat=3))
        body = pod(namespace, annotations=dict.fromkeys(islice(keys, number), ""))
        body["metadata"]["finalizers"] = [FINALIZER]
        answer = editor.create(pods(namespace), body)
        print(number, answer.status, answer.message[-200:])
        if answer.ok:
            goes(admin, pods(namespace, body["metadata"]["name"]))
