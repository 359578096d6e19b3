"""Nobody picks GPUs past the scheduler and the device plugin, but in namespaces that are exempt."""

from typing import Any

import pytest
from tests.api.admission.objects import (
    ELSEWHERE,
    PROJECT,
    RELEASE,
    VISIBLE,
    created,
    from_annotation,
    picking,
    pod,
    pods,
    refused,
)
from tests.api.caller import Answer, Caller

BOTH = pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])


@pytest.mark.parametrize(
    "entry",
    [
        {"name": VISIBLE, "value": "all"},
        {"name": VISIBLE, "value": "GPU-0"},
        {"name": VISIBLE, "value": "$(OTHER)"},
        {"name": VISIBLE, "value": "void,0"},
        from_annotation("own"),
        from_annotation("gpu-scheduler.io/c0-devices-more"),
        {"name": VISIBLE, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": VISIBLE, "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}},
        {"name": VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
    ],
)
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_nobody_picks_gpus_by_hand(editor: Caller, entry: dict[str, Any], where: str) -> None:
    def body(namespace: str) -> dict[str, Any]:
        made = pod(namespace, env=[{"name": VISIBLE, "value": "void"}])
        # The last of two entries wins in a container, so none of them may be wrong.
        env = [{"name": VISIBLE, "value": "void"}, entry, {"name": "A", "value": "b"}]
        made["spec"].setdefault(where, []).append({"name": "sly", "image": "example", "env": env})
        return made

    for namespace in (PROJECT, ELSEWHERE):
        answer = editor.create(pods(namespace), body(namespace))
        assert refused(answer)
        assert f"container sly sets {VISIBLE}" in answer.message
        assert "use a GPUJob" in answer.message
        value = "admission.devices.exemptNamespaces of the chart"
        assert f"{namespace} is not among {value}" in answer.message


def test_pods_pick_where_the_chart_exempts_their_namespace(admin: Caller, exempt: str) -> None:
    for namespace in (exempt, RELEASE):
        created(admin, picking(namespace))


@pytest.mark.parametrize(
    "env",
    [
        [],
        [{"name": VISIBLE, "value": "void"}],
        [{"name": VISIBLE, "value": "none"}],
        [{"name": VISIBLE}],
        [from_annotation("gpu-scheduler.io/c0-devices")],
        [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}],
    ],
)
def test_what_gives_no_gpu_may_be_set(editor: Caller, env: list[dict[str, Any]]) -> None:
    for namespace in (PROJECT, ELSEWHERE):
        created(editor, pod(namespace, env=env))


@pytest.mark.parametrize("name", ["GPUCAP_LIMIT_FILE", "GPUCAP_STATE_DIR", "GPUCAP_NEW"])
def test_nobody_tells_the_library_for_caps_what_to_obey(
    admin: Caller, editor: Caller, exempt: str, name: str
) -> None:
    env = [{"name": name, "value": "/tmp/other"}]
    for labels in ({}, {"gpu-scheduler.io/job": "any"}):
        body = pod(PROJECT, env=env)
        body["metadata"]["labels"] = labels
        answer = editor.create(pods(PROJECT), body)
        assert refused(answer), answer
        assert "container main sets a variable that begins with GPUCAP_" in answer.message
    path = created(editor, pod(PROJECT))
    debug = {"name": "debug", "image": "example", "env": env}
    answer = admin.patch(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debug]}})
    assert refused(answer), answer
    created(admin, pod(exempt, env=env))


def leaves_it_to_its_image(answer: Answer) -> bool:
    return refused(answer) and (
        "container main of a pod with runtimeClassName nvidia leaves" in answer.message
    )


@BOTH
def test_a_container_on_the_gpu_runtime_says_what_it_sees(
    admin: Caller, editor: Caller, exempt: str, namespace: str
) -> None:
    silent = pod(namespace, runtimeClassName="nvidia")
    assert leaves_it_to_its_image(editor.create(pods(namespace), silent))
    void = [{"name": VISIBLE, "value": "void"}]
    created(editor, pod(namespace, runtimeClassName="nvidia", env=void))
    created(admin, pod(exempt, runtimeClassName="nvidia"))


@pytest.mark.parametrize("name", ["nvidia-cdi", "nvidia-legacy"])
def test_every_runtime_class_of_nvidias_is_the_gpu_runtime(
    admin: Caller, editor: Caller, name: str
) -> None:
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": name}
    answer = admin.create(
        "/apis/node.k8s.io/v1/runtimeclasses", {**kind, "metadata": {"name": name}}
    )
    assert answer.ok, answer.message
    answer = editor.create(pods(ELSEWHERE), pod(ELSEWHERE, runtimeClassName=name))
    assert refused(answer), answer
    assert f"with runtimeClassName {name} leaves" in answer.message
    labelled = pod(ELSEWHERE, runtimeClassName=name)
    labelled["metadata"]["labels"] = {"gpu-scheduler.io/job": "x"}
    assert refused(editor.create(pods(ELSEWHERE), labelled))


@BOTH
@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"]
)
def test_what_the_device_plugin_is_asked_for_is_in_nobodys_way(
    editor: Caller, namespace: str, resource: str
) -> None:
    created(editor, pod(namespace, runtimeClassName="nvidia", limits={resource: "1"}))


@BOTH
@pytest.mark.parametrize(
    ("limits", "spec"),
    [
        ({"nvidia.com/gpu": "0"}, {}),
        ({"nvidia.com/hostdev": "1"}, {}),  # a network card
        ({"nvidia.com/gpu": "1"}, {"nodeName": "without-a-plugin"}),
    ],
)
def test_where_no_device_plugin_chooses_a_container_says_what_it_sees(
    editor: Caller, namespace: str, limits: dict[str, str], spec: dict[str, str]
) -> None:
    body = pod(namespace, runtimeClassName="nvidia", limits=limits, **spec)
    assert leaves_it_to_its_image(editor.create(pods(namespace), body))


@pytest.mark.parametrize(
    ("prefix", "passes"), [(None, False), ("", False), ("NVIDIA_", False), ("MY_", True)]
)
def test_env_from_does_not_overrule_the_device_plugin(
    editor: Caller, prefix: str | None, passes: bool
) -> None:
    body = pod(PROJECT, runtimeClassName="nvidia", limits={"nvidia.com/gpu": "1"})
    source: dict[str, Any] = {"configMapRef": {"name": "sly"}}
    if prefix is not None:
        source["prefix"] = prefix
    body["spec"]["containers"][0]["envFrom"] = [source]
    answer = editor.create(pods(PROJECT), body)
    assert answer.ok is passes, answer.message
    assert refused(answer) is not passes
    assert passes or "give envFrom a prefix" in answer.message


@pytest.mark.parametrize(
    ("harmless", "why"), [(1_990, "container main sets"), (8_000, "env: 8001 entries")]
)
def test_nobody_hides_what_he_picks_behind_more_than_a_policy_may_cost(
    editor: Caller, harmless: int, why: str
) -> None:
    dear = from_annotation(f"gpu-scheduler.io/c{'9' * 12}-devices")  # for the regular expression
    env = [dear] * harmless + [{"name": VISIBLE, "value": "all"}]
    answer = editor.create(pods(PROJECT), pod(PROJECT, runtimeClassName="nvidia", env=env))
    assert refused(answer), answer.status
    assert why in answer.message


@pytest.mark.parametrize(
    ("env", "word"), [([{"name": VISIBLE, "value": "all"}], "sets"), ([], "leaves")]
)
def test_a_debug_container_gets_no_gpu_either(
    admin: Caller, editor: Caller, env: list[dict[str, str]], word: str
) -> None:
    placed_by_us = [from_annotation("gpu-scheduler.io/c0-devices")]
    path = created(editor, pod(PROJECT, runtimeClassName="nvidia", env=placed_by_us))

    def debug(env: list[dict[str, str]]) -> Answer:
        container = {"name": "debug", "image": "example", "env": env}
        return admin.patch(
            f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": [container]}}
        )

    answer = debug(env)
    assert refused(answer)
    assert "container debug " in answer.message
    assert f"{word} " in answer.message
    assert debug([{"name": VISIBLE, "value": "void"}]).ok


@pytest.mark.parametrize("namespace", [PROJECT, ELSEWHERE])
@pytest.mark.parametrize(
    ("env", "passes"),
    [
        ([from_annotation("gpu-scheduler.io/c0-devices")], True),
        ([{"name": VISIBLE, "value": "void"}], True),
        ([{"name": VISIBLE, "value": "all"}], False),
        ([], False),
    ],
)
def test_the_label_of_a_gpujob_opens_no_way_around(
    editor: Caller, namespace: str, env: list[dict[str, Any]], passes: bool
) -> None:
    body = pod(namespace, runtimeClassName="nvidia", env=env)
    body["metadata"]["labels"] = {"gpu-scheduler.io/job": "sly"}
    answer = editor.create(pods(namespace), body)
    assert answer.ok is passes, answer.message
    assert refused(answer) is not passes
    assert passes or "in a pod with the label gpu-scheduler.io/job" in answer.message


def test_a_debug_container_in_a_gpujobs_pod_gets_no_gpu_either(
    admin: Caller, editor: Caller
) -> None:
    body = pod(PROJECT, runtimeClassName="nvidia", env=[{"name": VISIBLE, "value": "void"}])
    body["metadata"]["labels"] = {"gpu-scheduler.io/job": "mine"}
    path = f"{created(editor, body)}/ephemeralcontainers"
    container: dict[str, Any] = {"name": "debug", "image": "example"}
    answer = admin.patch(path, {"spec": {"ephemeralContainers": [container]}})
    assert refused(answer)
    assert "container debug of a pod" in answer.message
    container["env"] = [{"name": VISIBLE, "value": "void"}]
    assert admin.patch(path, {"spec": {"ephemeralContainers": [container]}}).ok
