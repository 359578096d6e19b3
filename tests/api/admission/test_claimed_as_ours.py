"""No pod gets past the scheduler, or runs without its GPU, because it calls itself ours.

What a tenant may write is tried in every form in which a pod asks: it is made ours like any other,
refused with a sentence, or waits for the operator, which alone can start it.
"""

from copy import deepcopy
from itertools import cycle
from typing import Any

import pytest
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.admission.objects import (
    ELSEWHERE,
    GATE,
    PROJECT,
    RELEASE,
    created,
    make_namespace,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Answer, Caller

from gpu_scheduler import __version__
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.placeholder import PlaceholderSettings, holder
from gpu_scheduler.jobs.share import Installation, share

pytestmark = pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="Kubernetes before 1.36")

Json = dict[str, Any]
GROUP = "gpu-scheduler.io"
ASKED, VOID = f"{GROUP}/asked", {f"{GROUP}/c0-devices": "void"}
PLUGIN = "nvidia.com/gpu"
GIVEN = Installation(CapImage(f"gpu-scheduler:{__version__}", "IfNotPresent"))
JUDGE = "Policy 'gpu-scheduler-share-requests'"


@pytest.fixture(scope="package")
def tenant(admin: Caller, editor: Caller) -> Caller:
    """A user who may edit namespaces that opt in, each named as what it opts in to."""
    for compat in Compat:
        make_namespace(admin, compat)
        labels = {"metadata": {"labels": {f"{GROUP}/compat": str(compat)}}}
        assert admin.patch(f"/api/v1/namespaces/{compat}", labels).ok
        wait_until(lambda name=compat: ASKED in str(sent(editor, asking(name)).body))
        wait_until(lambda name=compat: not sent(editor, asking(name, "x")).ok)
    return editor


def asking(namespace: str, gpu: str = "0.5") -> Json:
    """A pod that asks by our label."""
    body = pod(namespace)
    body["metadata"]["labels"] = {f"{GROUP}/gpu": gpu}
    return body


def sent(who: Caller, body: Json) -> Answer:
    return who.create(f"{pods(body['metadata']['namespace'])}?dryRun=All", body)


def waits(body: Json) -> bool:
    """Whether nobody but the operator can start a pod."""
    gates = [gate["name"] for gate in body["spec"].get("schedulingGates", ())]
    alone = body["spec"]["schedulerName"] == "gpu-scheduler" or GATE in gates
    return alone and "nodeName" not in body["spec"]


def asks_the_plugin(body: Json) -> bool:
    every = (*body["spec"]["containers"], *body["spec"].get("initContainers", ()))
    return any(PLUGIN in each.get("resources", {}).get("limits", {}) for each in every)


def by_label(body: Json) -> None:
    body["metadata"].setdefault("labels", {})[f"{GROUP}/gpu"] = "0.5"


def by_annotation(body: Json) -> None:
    body["metadata"]["annotations"][f"{GROUP}/gpu"] = "0.5"


def by_limit(body: Json) -> None:
    body["spec"]["containers"][0]["resources"] = {"limits": {PLUGIN: 1}}


def by_init(body: Json) -> None:
    first = {"name": "first", "image": "x", "resources": {"limits": {PLUGIN: 1}}}
    body["spec"]["initContainers"] = [first]


def by_our_limit(body: Json) -> None:
    body["spec"]["containers"][0]["resources"] = {"limits": {f"{GROUP}/milligpu": 500}}


ASKS = (by_label, by_annotation, by_limit, by_init, by_our_limit)
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
CLAIMS: dict[str, Json] = {
    "a GPUJob's label": {"labels": {f"{GROUP}/job": "x"}},
    "a label of this release": {"labels": {f"{GROUP}/component": "holder"}},
    "that it was made": {"labels": {f"{GROUP}/share": "true"}, "annotations": VOID},
    "that it was rendered": {"labels": {f"{GROUP}/share": "rendered"}, "annotations": VOID},
    "an annotation": {"annotations": VOID},
    "a GPUJob's mark": {"labels": {f"{GROUP}/job": "x"}, "annotations": VOID},
    "a Job": {"labels": {f"{GROUP}/job": "x"}, "annotations": VOID, "ownerReferences": [OWNER]},
    "what was asked": {"annotations": {**VOID, ASKED: f"0:{GROUP}/gpu=0.5"}},
    "the path": {"labels": {f"{GROUP}/path": "bind", f"{GROUP}/leader": "true"}},
}


@pytest.mark.parametrize(("claim", "compat"), list(zip(CLAIMS, cycle(Compat), strict=False)))
def test_who_calls_himself_ours_is_made_ours_or_refused(
    tenant: Caller, claim: str, compat: Compat
) -> None:
    for ask in ASKS:
        for more in ({}, {"schedulerName": "gpu-scheduler"}, {"schedulingGates": [{"name": GATE}]}):
            body = pod(compat, **more)
            claimed = deepcopy(CLAIMS[claim])
            body["metadata"] |= {"annotations": {}, **claimed}
            ask(body)
            answer = sent(tenant, body)
            if not answer.ok:
                assert JUDGE in answer.message, (ask.__name__, more, answer.message)
                continue
            assert waits(answer.body), (ask.__name__, more)
            made = ASKED in answer.body["metadata"]["annotations"]
            assert not asks_the_plugin(answer.body), (ask.__name__, more)
            assert made or (more and "job" in str(claimed.get("labels"))), (
                "those of GPUJobs are not"
            )


@pytest.mark.parametrize("compat", [None, *Compat])
@pytest.mark.parametrize("key", [f"{GROUP}/milligpu", f"{GROUP}/gpu-mib", PLUGIN])
@pytest.mark.parametrize("others", [True, False])
def test_an_init_container_that_ends_has_no_share(
    tenant: Caller, compat: Compat | None, key: str, others: bool
) -> None:
    body = pod(compat or ELSEWHERE)
    if others:
        by_our_limit(body)
    asks = {"resources": {"limits": {key: 1000}}}
    body["spec"]["initContainers"] = [
        {"name": "ready", "image": "x"},
        {"name": "first", "image": "x", **asks},
    ]
    answer = sent(tenant, body)
    if compat is None and key == PLUGIN and not others:
        assert answer.ok, "it asks somebody else"
        return
    assert not answer.ok
    assert JUDGE in answer.message
    if compat is not None or key != PLUGIN:
        assert "init container first asks for a GPU and ends before" in answer.message
        assert "restartPolicy Always (a sidecar)" in answer.message


def test_an_annotation_that_names_one_is_told_so(tenant: Caller) -> None:
    for key, amount, compat in (
        (f"{GROUP}/gpu-container", f"{GROUP}/gpu", ELSEWHERE),
        ("gpu-fraction-container-name", "gpu-fraction", Compat.KAI),
    ):
        body = pod(compat, annotations={key: "first", amount: "0.5"})
        body["spec"]["initContainers"] = [{"name": "first", "image": "x"}]
        answer = sent(tenant, body)
        assert f"metadata.annotations[{key}]: names an init container that ends" in answer.message
        body["spec"]["initContainers"][0]["restartPolicy"] = "Always"
        assert sent(tenant, body).ok


def rendered(namespace: str) -> Json:
    """A pod as ``kubectl gpu render`` prints it."""
    body = pod(namespace, annotations={f"{GROUP}/gpu": "0.5"})
    made = share(body["metadata"], body["spec"], GIVEN, controlled=False)
    assert made is not None and isinstance(made[0], dict)
    made[0]["labels"][f"{GROUP}/share"] = "rendered"
    return {**body, "metadata": made[0], "spec": made[1]}


@pytest.mark.parametrize("namespace", [ELSEWHERE, *Compat])
def test_a_rendered_pod_asks_nobody_else(tenant: Caller, namespace: str) -> None:
    assert sent(tenant, rendered(namespace)).ok
    for kind in ("containers", "initContainers"):
        body = rendered(namespace)
        del body["metadata"]["labels"]
        body["spec"][kind][0].setdefault("resources", {})["limits"] = {PLUGIN: 1}
        answer = sent(tenant, body)
        assert not answer.ok
        assert "asks the device plugin for a GPU as well" in answer.message
    lost = rendered(namespace)
    del lost["spec"]["schedulingGates"]
    assert "leave schedulerName and schedulingGates as they were" in sent(tenant, lost).message


def test_nothing_is_put_over_the_library_by_another_field(tenant: Caller) -> None:
    for path in ("/etc/ld.so.preload", "/etc/gpu-scheduler/memory-limit-mib", "/x/../etc/y"):
        body = asking(ELSEWHERE)
        body["spec"]["containers"][0]["terminationMessagePath"] = path
        answer = sent(tenant, body)
        assert not answer.ok
        assert "container main mounts something where the GPU scheduler puts" in answer.message


def test_the_image_that_brings_the_library_stays_what_it_was(tenant: Caller) -> None:
    """The operator has looked at the pod by then, and does not look again."""
    cap = {"name": "gpu-scheduler-cap", "image": "scheduler:1"}
    first = {"name": "first", "image": "x"}
    gates = [{"name": GATE}]
    path = created(tenant, pod(ELSEWHERE, initContainers=[first, cap], schedulingGates=gates))

    def change(name: str) -> Answer:
        there = tenant.get(path).body["spec"]["initContainers"]
        changed = [{**c, "image": "mine"} if c["name"] == name else c for c in there]
        return tenant.patch(path, {"spec": {"initContainers": changed}})

    assert refused(answer := change("gpu-scheduler-cap"))
    assert "the image of gpu-scheduler-cap brings the library" in answer.message
    assert change("first").ok
    assert tenant.patch(path, {"metadata": {"labels": {"own": "1"}}}).ok


@pytest.mark.parametrize("compat", Compat)
def test_pods_of_gpujobs_are_as_they_were_made(tenant: Caller, compat: Compat) -> None:
    """Also where their template says what would ask elsewhere: a GPUJob asks by its fields."""
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    notes = {**VOID, "gpu-fraction": "0.5"}
    body = pod(compat, annotations=notes, env=env, schedulerName="gpu-scheduler")
    body["metadata"]["labels"] = {f"{GROUP}/job": "mine"}
    by_our_limit(body)
    answer = sent(tenant, body)
    assert answer.ok, answer.message
    assert answer.body["metadata"]["labels"] == body["metadata"]["labels"]
    assert answer.body["metadata"]["annotations"] == notes
    assert answer.body["spec"]["containers"][0]["env"] == env


def test_what_the_operator_makes_for_itself_is_nobodys_share(
    admin: Caller, operator: Caller
) -> None:
    path = f"/api/v1/namespaces/{RELEASE}"
    assert admin.patch(path, {"metadata": {"labels": {f"{GROUP}/compat": "nvidia"}}}).ok
    body = holder("n", "GPU-1", PlaceholderSettings(RELEASE, "gpu-scheduler:1"), None)
    wait_until(lambda: ASKED in str(sent(admin, body).body))
    answer = sent(operator, body)
    assert answer.ok, answer.message
    assert asks_the_plugin(answer.body)
    assert admin.patch(path, {"metadata": {"labels": {f"{GROUP}/compat": None}}}).ok, "it leaves"


# What a pod asks of a node that it names itself


@pytest.mark.parametrize("compat", Compat)
def test_who_names_his_node_asks_nobody_past_the_queue(tenant: Caller, compat: Compat) -> None:
    for ask in ASKS:
        body = pod(compat, nodeName="node-0")
        ask(body)
        answer = sent(tenant, body)
        assert not answer.ok
        assert JUDGE in answer.message


def test_elsewhere_the_plugins_keys_are_the_plugins(tenant: Caller) -> None:
    """A node without that resource gives such a pod nothing; one that has it is closed to us."""
    for namespace in (PROJECT, ELSEWHERE):
        created(tenant, pod(namespace, limits={PLUGIN: "1"}, nodeName="node-0"))
    answer = sent(tenant, pod(ELSEWHERE, limits={f"{GROUP}/milligpu": "500"}, nodeName="node-0"))
    assert refused(answer) or JUDGE in answer.message
