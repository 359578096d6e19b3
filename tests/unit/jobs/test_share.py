"""A pod that asks for a share by itself, made ours."""

from copy import deepcopy
from typing import Any

import pytest

from gpu_scheduler.api.names import (
    ASKED,
    CAP_CONTAINER,
    GATE,
    LABEL_SHARE,
    SCHEDULER_NAME,
    VISIBLE_DEVICES,
    devices_annotation,
)
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation, share

Json = dict[str, Any]
GIVEN = Installation(CapImage("scheduler:1"))
HALF: Json = {"annotations": {"gpu-scheduler.io/gpu": "0.5"}}


def pod(*names: str, **more: Any) -> Json:
    return {"containers": [{"name": name, "image": "x"} for name in names or ("main",)], **more}


def made(
    meta: Json, spec: Json, *, controlled: bool = True, given: Installation = GIVEN
) -> tuple[Json, Json]:
    before = deepcopy((meta, spec))
    found = share(meta, spec, given, controlled=controlled)
    assert found is not None
    assert not any(isinstance(each, Problem) for each in found), found
    assert (meta, spec) == before, "its input is the caller's"
    return found  # type: ignore[return-value]


def test_a_pod_of_a_controller_is_bound_by_us() -> None:
    meta, spec = made(HALF, pod())
    assert meta["labels"] == {LABEL_SHARE: "true"}
    assert meta["annotations"] == {
        "gpu-scheduler.io/gpu": "0.5",
        ASKED: "0:gpu-scheduler.io/gpu=0.5",
        devices_annotation(0): "void",
    }
    assert spec["schedulerName"] == SCHEDULER_NAME
    assert spec["runtimeClassName"] == "nvidia"
    assert [each["name"] for each in spec["initContainers"]] == [CAP_CONTAINER]
    assert "schedulingGates" not in spec
    assert "restartPolicy" not in spec


def test_a_pod_that_nobody_replaces_waits_behind_our_gate() -> None:
    _, spec = made(HALF, pod(), controlled=False)
    assert spec["schedulingGates"] == [{"name": GATE}]
    assert spec["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    "more",
    [
        {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"volumes": [{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}]},
        {"resourceClaims": [{"name": "c"}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "h"}]
                }
            }
        },
    ],
)
def test_what_only_kube_scheduler_does_goes_through_it(more: Json) -> None:
    limits = {"gpu-scheduler.io/milligpu": 500, "cpu": 1}
    spec = pod(**more)
    spec["containers"][0]["resources"] = {"limits": limits, "requests": dict(limits)}
    _, spec = made({}, spec)
    assert spec["schedulingGates"] == [{"name": GATE}]
    resources = spec["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": 1}, "requests": {"cpu": 1}}, "no node has our units"


def test_pods_of_a_podgroup_may_share_gpus_like_those_of_any_gang() -> None:
    meta = {"annotations": HALF["annotations"] | {"gpu-scheduler.io/distinct-gpus": "false"}}
    _, spec = made(meta, pod(schedulingGroup={"podGroupName": "ring"}))
    assert spec["schedulingGroup"] == {"podGroupName": "ring"}
    groups: tuple[object, ...] = (None, "ring", ["ring"], {}, {"podGroupName": 1})
    for none in groups:
        (problem,) = share(meta, pod(schedulingGroup=none), GIVEN, controlled=True) or ()
        assert isinstance(problem, Problem) and "goes with a gang" in problem.message


def test_containers_without_gpus_are_told_so() -> None:
    spec = pod("main", "sidecar", initContainers=[{"name": "first"}])
    _, spec = made(HALF, spec)
    for container in (*spec["containers"][1:], *spec["initContainers"]):
        assert container["env"] == [{"name": VISIBLE_DEVICES, "value": "void"}]


def test_what_is_said_of_the_container_stays_in_front_of_none_of_ours() -> None:
    spec = pod()
    spec["containers"][0]["env"] = [{"name": "U", "value": "$(GPU_MEMORY_LIMIT_MIB)"}]
    _, spec = made(HALF, spec)
    assert [entry["name"] for entry in spec["containers"][0]["env"]] == [
        VISIBLE_DEVICES,
        "GPU_MEMORY_LIMIT_MIB",
        "CUPY_GPU_MEMORY_LIMIT",
        "U",
    ]


def test_without_the_library_there_is_no_init_container() -> None:
    meta = {"annotations": HALF["annotations"] | {"gpu-scheduler.io/isolation": "framework"}}
    _, spec = made(meta, pod())
    assert not spec.get("initContainers")


def test_a_time_limit_is_the_pods_deadline() -> None:
    meta = {"annotations": HALF["annotations"] | {"gpu-scheduler.io/time-limit": "60"}}
    assert made(meta, pod())[1]["activeDeadlineSeconds"] == 60
    assert made(meta, pod(activeDeadlineSeconds=5))[1]["activeDeadlineSeconds"] == 5


def test_one_that_does_not_ask_or_is_ours_already_is_left_alone() -> None:
    assert share({}, pod(), GIVEN, controlled=True) is None
    meta, spec = made(HALF, pod())
    assert share(meta, spec, GIVEN, controlled=True) is None


def from_hami(**more: Any) -> Json:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "cpu": 1}
    spec = pod("main", "other", schedulerName="hami-scheduler", **more)
    spec["containers"][0]["resources"] = {"limits": limits, "requests": dict(limits)}
    spec["containers"][1]["resources"] = {"limits": {"nvidia.com/gpu": 0}}
    return spec


def test_in_a_namespace_that_opts_in_another_schedulers_pod_is_ours() -> None:
    before = from_hami()
    found = share({}, before, GIVEN, controlled=True, compat=Compat.HAMI)
    assert before == from_hami(), "its input is the caller's"
    assert found is not None
    meta, spec = found
    assert isinstance(meta, dict) and isinstance(spec, dict)
    assert meta["annotations"][ASKED] == "0:nvidia.com/gpu=1,nvidia.com/gpumem=3000"
    assert spec["schedulerName"] == SCHEDULER_NAME
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": 1}, "requests": {"cpu": 1}}
    assert spec["containers"][1]["resources"] == {"limits": {}}
    assert share(meta, spec, GIVEN, controlled=True, compat=Compat.HAMI) is None


def test_elsewhere_their_keys_are_theirs() -> None:
    for compat in (None, Compat.KAI):
        spec = from_hami()
        del spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
        assert share({}, spec, GIVEN, controlled=True, compat=compat) is None
    meta = {"annotations": {"gpu-fraction": "0.5", "gpu-memory": "2000"}}
    for compat in (None, Compat.HAMI, Compat.NVIDIA):
        assert share(meta, pod(), GIVEN, controlled=True, compat=compat) is None


PLUGIN, OWN_MIB = "nvidia.com/gpu", "gpu-scheduler.io/gpu-mib"


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize(
    ("compat", "key"),
    [
        (None, OWN_MIB),
        *((compat, PLUGIN) for compat in Compat),
        (Compat.HAMI, "nvidia.com/gpumem"),
        (Compat.KAI, OWN_MIB),
    ],
)
def test_an_init_container_that_ends_has_no_share(
    others: bool, compat: Compat | None, key: str
) -> None:
    """A GPU is held as long as the pod runs: who asks for one in vain is told so."""
    asks = {"resources": {"limits": {key: 9000}, "requests": {key: 9000}}}
    ready, first = {"name": "ready"}, {"name": "first", **asks}
    spec = pod(initContainers=[ready, first])
    if others:
        spec["containers"][0]["resources"] = {"limits": {OWN_MIB: 7168}}
    found = share({}, spec, GIVEN, controlled=True, compat=compat)
    assert found is not None
    (problem,) = found
    assert isinstance(problem, Problem)
    assert problem.field == f"spec.initContainers[1].resources.limits[{key}]"
    assert "init container first ends before the others start" in problem.message
    assert "a sidecar" in problem.message
    first["restartPolicy"] = "Always"
    assert share({}, spec, GIVEN, controlled=True, compat=compat) != found


def test_one_that_wants_none_or_asks_somebody_else_is_left_alone() -> None:
    none = {"name": "first", "resources": {"limits": {PLUGIN: 0}}}
    spec = pod(initContainers=[none])
    assert share({}, spec, GIVEN, controlled=True, compat=Compat.NVIDIA) is None
    none["resources"]["limits"][PLUGIN] = 1
    assert share({}, spec, GIVEN, controlled=True) is None


VOID = {devices_annotation(0): "void"}
CLAIMS: dict[str, tuple[Json, Json, Json]] = {
    "a share's annotation": ({}, VOID, {}),
    "a GPUJob's label": ({"gpu-scheduler.io/job": "x"}, VOID, {}),
    "a label of this release": ({"gpu-scheduler.io/component": "holder"}, {}, {}),
    "that it was made": ({LABEL_SHARE: "true"}, VOID, {}),
    "that it was rendered": ({LABEL_SHARE: "rendered"}, VOID, {}),
    "our scheduler": ({}, VOID, {"schedulerName": SCHEDULER_NAME}),
    "our gate": ({}, VOID, {"schedulingGates": [{"name": GATE}]}),
    "another gate": (
        {"gpu-scheduler.io/job": "x"},
        VOID,
        {"schedulingGates": [{"name": "example.com/other"}]},
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_pod_that_calls_itself_ours_is_made_ours(claim: str) -> None:
    labels, notes, more = CLAIMS[claim]
    plain = made({"annotations": HALF["annotations"]}, pod())
    meta, spec = made({"labels": labels, "annotations": HALF["annotations"] | notes}, pod(**more))
    assert {**spec, "schedulingGates": []} == {**plain[1], "schedulingGates": []}
    assert meta["annotations"] == plain[0]["annotations"]


def test_what_looks_like_a_gpujobs_and_asks_the_plugin_is_nobodys() -> None:
    limits = {"resources": {"limits": {PLUGIN: 1}}}
    meta = {"labels": {"gpu-scheduler.io/job": "x"}, "annotations": VOID}
    spec = pod(schedulerName=SCHEDULER_NAME)
    assert share(meta, spec, GIVEN, controlled=True, compat=Compat.NVIDIA) is None
    spec["containers"][0] |= limits
    found = share(meta, spec, GIVEN, controlled=True, compat=Compat.NVIDIA)
    assert found is not None and not isinstance(found[0], Problem), "and is made ours"


def test_devices_are_not_for_its_user_to_write() -> None:
    meta = {"annotations": HALF["annotations"] | {devices_annotation(0): "all"}}
    found = share(meta, pod(), GIVEN, controlled=True)
    assert found is not None
    (problem,) = found
    assert isinstance(problem, Problem) and devices_annotation(0) in problem.field


def test_what_was_asked_stands_on_pods_that_wait_for_us_alone() -> None:
    meta, spec = made(HALF, pod())
    for scheduler in ("default-scheduler", ""):
        found = share(meta, {**spec, "schedulerName": scheduler}, GIVEN, controlled=True)
        assert found is not None and isinstance(found[0], Problem)
        assert ASKED in found[0].field and "as they were rendered" in found[0].message
    found = share(
        {"annotations": {ASKED: "0:gpu-scheduler.io/gpu=1"}}, pod(), GIVEN, controlled=True
    )
    assert found is not None and isinstance(found[0], Problem)


REFUSED: dict[str, tuple[Json, str]] = {
    "devices by hand": (
        {"containers": [{"name": "a"}, {"name": "b", "env": [{"name": VISIBLE_DEVICES}]}]},
        "spec.containers[1].env[0].name",
    ),
    "a cap by hand": (
        {"containers": [{"name": "a", "env": [{"name": "GPU_MEMORY_LIMIT_MIB"}]}]},
        "spec.containers[0].env[0].name",
    ),
    "the library's folder": (
        {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/opt/gpu-scheduler/lib"}]}]},
        "spec.containers[0].volumeMounts[0].mountPath",
    ),
    "the library's volume in a sidecar": (
        {
            "containers": [
                {"name": "a"},
                {
                    "name": "b",
                    "volumeMounts": [{"name": "gpu-scheduler-cap", "mountPath": "/x"}],
                },
            ]
        },
        "spec.containers[1].volumeMounts[0].name",
    ),
    "its volume": (
        {"containers": [{"name": "a"}], "volumes": [{"name": "gpu-scheduler-cap"}]},
        "spec.volumes[0].name",
    ),
    "a node": ({"containers": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
    "another scheduler": (
        {"containers": [{"name": "a"}], "schedulerName": "volcano"},
        "spec.schedulerName",
    ),
    "the device plugin": (
        {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
        "spec.containers[0].resources",
    ),
    "a list where an object belongs": ({"containers": ["a"]}, "spec.containers[0]"),
    "too many containers": (
        {"containers": [{"name": f"c{number}"} for number in range(200)]},
        "spec.containers",
    ),
    "too many variables": (
        {"containers": [{"name": "a", "env": [{"name": f"v{n}"} for n in range(5000)]}]},
        "spec.containers[].env",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_its_field(case: str) -> None:
    spec, field = REFUSED[case]
    found = share(HALF, spec, GIVEN, controlled=True)
    assert found is not None
    (problem,) = found
    assert isinstance(problem, Problem)
    assert problem.field == field
    assert "spec.gpu" not in problem.message, "that is how a GPUJob asks"
