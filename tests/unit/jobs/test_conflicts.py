from typing import Any

import pytest

from gpu_scheduler.jobs.conflicts import problems

CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "other scheduler": (
        {"schedulerName": "volcano"},
        "spec.template.spec.schedulerName",
        "remove the field",
    ),
    "thirty years to say goodbye": (
        {"terminationGracePeriodSeconds": 10**9},
        "spec.template.spec.terminationGracePeriodSeconds",
        "at most 3600",
    ),
    "node": ({"nodeName": "n1"}, "spec.template.spec.nodeName", "nodeSelector"),
    "volume": (
        {"volumes": [{"name": "data"}, {"name": "gpu-scheduler-c0"}]},
        "spec.template.spec.volumes[1].name",
        "rename the volume",
    ),
    "mount": (
        {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/etc/gpu-scheduler"}]}]},
        "spec.template.spec.containers[0].volumeMounts[0].mountPath",
        "mount the volume elsewhere",
    ),
    "device plugin": (
        {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
        "spec.template.spec.containers[0].resources",
        "spec.gpu",
    ),
    "MIG": (
        {
            "initContainers": [
                {"name": "a", "resources": {"requests": {"nvidia.com/mig-1g.5gb": 1}}}
            ]
        },
        "spec.template.spec.initContainers[0].resources",
        "nvidia.com/mig-1g.5gb",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_conflict_names_the_field_and_the_way_out(case: str) -> None:
    spec, field, way_out = CASES[case]
    for interposer in (False, True):
        (problem,) = problems(spec, {0}, interposer=interposer)
        assert problem.field == field
        assert way_out in problem.message


@pytest.mark.parametrize("name", ["gpu-scheduler-cap", "gpu-scheduler-c0"])
def test_our_volumes_are_mounted_by_nobody_else(name: str) -> None:
    """Who may write the library's volume takes the cap away from the container beside it."""
    mounts = [{"name": "data", "mountPath": "/d"}, {"name": name, "mountPath": "/x"}]
    for kind in ("containers", "initContainers"):
        spec = {"containers": [{"name": "a"}], kind: [{"name": "b", "volumeMounts": mounts}]}
        (problem,) = problems(spec, {0}, interposer=True)
        assert problem.field == f"spec.template.spec.{kind}[0].volumeMounts[1].name"
        assert "mount another" in problem.message


def test_nothing_is_mounted_over_the_file_with_the_cap() -> None:
    spec = mounting("/etc/gpu-scheduler/memory-limit-mib", subPath="mine")
    (problem,) = problems(spec, {0}, interposer=False)
    assert problem.field == MOUNT


def test_nor_is_the_message_of_its_end() -> None:
    """The kubelet mounts that file over all volumes, and whoever runs there may write it."""
    path = "/etc/gpu-scheduler/memory-limit-mib"
    spec = {"containers": [{"name": "a", "terminationMessagePath": path}, {"name": "b"}]}
    (problem,) = problems(spec, {0}, interposer=False)
    assert problem.field == "spec.template.spec.containers[0].terminationMessagePath"
    assert problems(spec, {1}, interposer=False) == ()
    usual = {"containers": [{"name": "a", "terminationMessagePath": "/dev/termination-log"}]}
    assert problems(usual, {0}, interposer=True) == ()
    odd = {"containers": [{"name": "a", "terminationMessagePath": 5, "volumeDevices": ["x"]}]}
    assert problems(odd, {0}, interposer=True) == ()


def mounting(path: str, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "a", "volumeMounts": [{"mountPath": path, **more}]}]}


def test_a_sidecar_with_gpus_keeps_the_places_of_our_files_free() -> None:
    mount = [{"mountPath": "/etc/gpu-scheduler"}]
    sidecar = {"name": "s", "restartPolicy": "Always", "volumeMounts": mount}
    spec = {"initContainers": [{"name": "i"}, sidecar], "containers": [{"name": "a"}]}
    (problem,) = problems(spec, {65}, interposer=False)
    assert problem.field == "spec.template.spec.initContainers[1].volumeMounts[0].mountPath"
    assert problems(spec, {0}, interposer=False) == ()


MOUNT = "spec.template.spec.containers[0].volumeMounts[0].mountPath"
LIBRARY: dict[str, tuple[dict[str, Any], str, str]] = {
    "their own preload file": (mounting("/etc/ld.so.preload"), MOUNT, "spec.isolation: framework"),
    "written otherwise": (mounting("/etc//ld.so.preload/"), MOUNT, "spec.isolation: framework"),
    "with two slashes": (mounting("//etc/ld.so.preload"), MOUNT, "spec.isolation: framework"),
    "without a slash": (mounting("etc/ld.so.preload"), MOUNT, "spec.isolation: framework"),
    "the library's folder": (mounting("/opt/gpu-scheduler/lib"), MOUNT, "mount the volume else"),
    "all of ours": (mounting("/opt/gpu-scheduler"), MOUNT, "mount the volume elsewhere"),
    "the termination message": (
        {"containers": [{"name": "a", "terminationMessagePath": "//etc/ld.so.preload"}]},
        "spec.template.spec.containers[0].terminationMessagePath",
        "spec.isolation: framework",
    ),
    "a block device": (
        {"containers": [{"name": "a", "volumeDevices": [{"devicePath": "/etc/ld.so.preload"}]}]},
        "spec.template.spec.containers[0].volumeDevices[0].devicePath",
        "spec.isolation: framework",
    ),
    "a parent that cannot hold it": (mounting("/opt", readOnly=True), MOUNT, "without readOnly"),
    "volume": (
        {"volumes": [{"name": "gpu-scheduler-cap"}]},
        "spec.template.spec.volumes[0].name",
        "rename the volume",
    ),
    "init container": (
        {"initContainers": [{"name": "gpu-scheduler-cap"}]},
        "spec.template.spec.initContainers[0].name",
        "rename the container",
    ),
}


@pytest.mark.parametrize("case", LIBRARY)
def test_what_the_library_needs_is_reserved_where_it_is_delivered(case: str) -> None:
    spec, field, way_out = LIBRARY[case]
    (problem,) = problems(spec, {0}, interposer=True)
    assert problem.field == field
    assert way_out in problem.message
    assert problems(spec, {0}, interposer=False) == ()


@pytest.mark.parametrize("path", ["/opt", "/opt/gpu-scheduler-data", "/etc/ld.so.conf.d", None])
def test_other_mounts_are_the_users_own(path: Any) -> None:
    assert problems(mounting(path), {0}, interposer=True) == ()


def test_containers_without_a_gpu_mount_what_they_like() -> None:
    assert problems(mounting("/etc/ld.so.preload"), {1}, interposer=True) == ()


def test_ordinary_templates_have_no_problem() -> None:
    spec = {
        "schedulerName": "default-scheduler",
        "schedulingGates": [{"name": "example.com/license"}],
        "containers": [
            {"name": "a", "resources": {"limits": {"cpu": 1, "nvidia.com/hostdev": 1}}},
            {"name": "b", "volumeMounts": [{"mountPath": "/etc/gpu-scheduler"}]},
        ],
        "volumes": [{"name": "gpu-scheduler-c1", "emptyDir": {}}],
    }
    assert problems(spec, {0}, interposer=True) == ()


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "GPUCAP_LIMIT_FILE", "GPUCAP_X"])
def test_devices_and_caps_by_hand_are_refused_with_the_way_out(name: str) -> None:
    env = [{"name": "LR", "value": "1"}, {"name": name, "value": "all"}]
    spec = {"containers": [{"name": "main", "image": "x", "env": env}]}
    (problem,) = problems(spec, [0], interposer=False)
    assert problem.field == "spec.template.spec.containers[0].env[1].name"
    assert "remove it" in problem.message
