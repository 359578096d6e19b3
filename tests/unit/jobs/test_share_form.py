"""Which pods that ask by themselves get a device: those that ``share`` makes, and no others."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.share_request import ShareRequest, request_of
from gpu_scheduler.api.share_words import words
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation, share
from gpu_scheduler.jobs.share_form import lacks
from gpu_scheduler.kube.objects import Pod

Json = dict[str, Any]
IMAGE = CapImage("registry.example:5000/scheduler:1")


def asking(spec: Json, notes: Json) -> tuple[Json, Json, ShareRequest]:
    """A pod as ``share`` makes it, and what it asks for."""
    request = request_of(words({}, notes, spec), {}, notes)
    assert isinstance(request, ShareRequest), request
    made = share({"annotations": notes}, spec, Installation(IMAGE), controlled=True)
    assert made is not None and not isinstance(made[0], str)
    return made[0], defaulted(made[1]), request  # type: ignore[return-value, arg-type]


def defaulted(spec: Json) -> Json:
    """What the API server adds to it."""
    for volume in spec["volumes"]:
        if "downwardAPI" in volume:
            volume["downwardAPI"]["defaultMode"] = 420
            for item in volume["downwardAPI"]["items"]:
                item["fieldRef"]["apiVersion"] = "v1"
    for container in (*spec["containers"], *spec["initContainers"]):
        container["imagePullPolicy"] = "IfNotPresent"
        for entry in container.get("env", ()):
            if "valueFrom" in entry:
                entry["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    return spec


def typed(meta: Json, spec: Json) -> Pod:
    return msgspec.json.decode(msgspec.json.encode({"metadata": meta, "spec": spec}), type=Pod)


def half() -> tuple[Json, Json, ShareRequest]:
    spec = {"containers": [{"name": "main"}, {"name": "sidecar"}], "initContainers": []}
    return asking(spec, {"gpu-scheduler.io/gpu": "0.5"})


def test_what_share_makes_lacks_nothing() -> None:
    meta, spec, request = half()
    assert lacks(typed(meta, spec), request, IMAGE) == ""
    assert lacks(typed(meta, spec), request, CapImage("registry.example:5000/scheduler:2")) == ""


@given(
    st.integers(1, 4), st.integers(0, 2), st.integers(0, 3), st.sampled_from(["cpu", "memory", ""])
)
def test_whatever_it_looked_like(gpus: int, others: int, limit: int, resource: str) -> None:
    milli = {"gpu-scheduler.io/milligpu": str(100 + limit)}
    milli |= {resource: "1"} if resource else {}
    spec: Json = {
        "containers": [
            *({"name": f"o{n}", "env": [{"name": "A", "value": "b"}]} for n in range(others)),
            *({"name": f"g{n}", "resources": {"limits": milli}} for n in range(gpus)),
        ],
        "initContainers": [
            {"name": "first"},
            {"name": "side", "restartPolicy": "Always", "resources": {"limits": milli}},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    meta, spec, request = asking(spec, {})
    assert lacks(typed(meta, spec), request, IMAGE) == ""


def main(spec: Json) -> Json:
    return next(each for each in spec["containers"] if each["name"] == "main")


def other(spec: Json) -> Json:
    return next(each for each in spec["containers"] if each["name"] == "sidecar")


def named(entries: list[Json], name: str) -> Json:
    return next(each for each in entries if each["name"] == name)


def append(entries: list[Json], entry: Json) -> None:
    entries.append(entry)


def installer(spec: Json, **more: object) -> None:
    spec["initContainers"][0].update(more)


def asks(container: Json, resource: str) -> Json:
    container["resources"] = {"limits": {resource: "1"}}
    return container


CAP = "gpu-scheduler-cap"
TAMPERED: dict[str, Callable[[Json], Any]] = {
    "all devices, later": lambda s: append(
        main(s)["env"], {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    ),
    "all devices, instead": lambda s: main(s)["env"].__setitem__(
        0, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    ),
    "a sidecar with all": lambda s: other(s)["env"].__setitem__(
        0, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    ),
    "a sidecar whose image decides": lambda s: other(s).pop("env"),
    "a sidecar with the same GPUs": lambda s: other(s).__setitem__("env", main(s)["env"]),
    "a cap by hand": lambda s: append(
        main(s)["env"], {"name": "GPU_MEMORY_LIMIT_MIB", "value": "99999"}
    ),
    "a cap of the library by hand": lambda s: append(
        main(s)["env"], {"name": "GPUCAP_LIMIT_FILE", "value": "/x"}
    ),
    "no cap in the environment": lambda s: main(s)["env"].pop(1),
    "files of another volume": lambda s: named(s["volumes"], "gpu-scheduler-c0").__setitem__(
        "downwardAPI", None
    ),
    "a limit from elsewhere": lambda s: s["volumes"].__setitem__(
        0, {"name": "gpu-scheduler-c0", "configMap": {"name": "mine"}}
    ),
    "a file of another annotation": lambda s: named(s["volumes"], "gpu-scheduler-c0")[
        "downwardAPI"
    ]["items"][1]["fieldRef"].__setitem__("fieldPath", "metadata.annotations['mine']"),
    "a library from elsewhere": lambda s: s["volumes"].__setitem__(
        -1, {"name": CAP, "hostPath": {"path": "/x"}}
    ),
    "no files": lambda s: main(s).__setitem__(
        "volumeMounts", [m for m in main(s)["volumeMounts"] if m["name"] == CAP]
    ),
    "no library": lambda s: main(s).__setitem__(
        "volumeMounts", [m for m in main(s)["volumeMounts"] if m["name"] != CAP]
    ),
    "a library that may be written": lambda s: main(s)["volumeMounts"][1].pop("readOnly"),
    "the library in a sidecar": lambda s: other(s).__setitem__(
        "volumeMounts", [{"name": CAP, "mountPath": "/x"}]
    ),
    "the library once more": lambda s: append(
        main(s)["volumeMounts"], {"name": CAP, "mountPath": "/x"}
    ),
    "something over the library": lambda s: append(
        main(s)["volumeMounts"], {"name": "d", "mountPath": "/opt/gpu-scheduler/lib/../lib"}
    ),
    "nobody brings the library": lambda s: s.__setitem__("initContainers", []),
    "another image brings it": lambda s: s["initContainers"][0].__setitem__("image", "mine:1"),
    "a registry with our name": lambda s: s["initContainers"][0].__setitem__(
        "image", "registry.example:5001/scheduler:1"
    ),
    "another program": lambda s: s["initContainers"][0].__setitem__("command", ["sh"]),
    "it brings it elsewhere": lambda s: s["initContainers"][0]["volumeMounts"][0].__setitem__(
        "mountPath", "/x"
    ),
    "another argument": lambda s: s["initContainers"][0].__setitem__("args", ["/x"]),
    "it ends after the others start": lambda s: installer(s, restartPolicy="Always"),
    "something over the library that it copies": lambda s: append(
        s["initContainers"][0]["volumeMounts"], {"name": "d", "mountPath": "/opt/gpucap"}
    ),
    "something in a token's place that is not there": lambda s: append(
        s["initContainers"][0]["volumeMounts"],
        {"name": "d", "mountPath": "/var/run/secrets/../../../opt/gpucap"},
    ),
    "its target in a folder below": lambda s: s["initContainers"][0]["volumeMounts"][0].__setitem__(
        "subPathExpr", "$(X)"
    ),
    "an empty file over the library that it copies": lambda s: installer(
        s, terminationMessagePath="/opt/gpucap/libgpucap.so"
    ),
    "a device over it": lambda s: installer(
        s, volumeDevices=[{"name": "d", "devicePath": "/opt/gpucap/libgpucap.so"}]
    ),
    "variables of its loader": lambda s: append(
        s["initContainers"][0]["env"], {"name": "LD_PRELOAD", "value": "/x.so"}
    ),
    "variables that nobody sees": lambda s: installer(s, envFrom=[{"configMapRef": {"name": "m"}}]),
    "another folder to start in": lambda s: installer(s, workingDir="/x"),
    "it runs beside the others": lambda s: append(s["containers"], s["initContainers"].pop()),
    "it comes too late": lambda s: s["initContainers"].insert(
        0, {**s["containers"].pop(0), "restartPolicy": "Always"}
    ),
    "an empty file over the preload list": lambda s: main(s).__setitem__(
        "terminationMessagePath", "/etc/ld.so.preload"
    ),
    "a file of one's own for the cap": lambda s: main(s).__setitem__(
        "terminationMessagePath", "//etc/gpu-scheduler/memory-limit-mib"
    ),
    "a device for the preload list": lambda s: main(s).__setitem__(
        "volumeDevices", [{"name": "d", "devicePath": "/etc/ld.so.preload"}]
    ),
    "the device plugin's, too": lambda s: asks(main(s), "nvidia.com/gpu"),
    "a slice of the device plugin's": lambda s: asks(other(s), "nvidia.com/mig-1g.5gb"),
    "the device plugin's, before it starts": lambda s: append(
        s["initContainers"], asks({"name": "i", "env": other(s)["env"]}, "nvidia.com/gpu")
    ),
    "ours, before it starts": lambda s: append(
        s["initContainers"], asks({"name": "i", "env": other(s)["env"]}, "gpu-scheduler.io/gpu-mib")
    ),
    "ours, behind the gate": lambda s: (
        asks(main(s), "gpu-scheduler.io/milligpu"),
        s.__setitem__("schedulingGates", [{"name": "gpu-scheduler.io/placement"}]),
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_one_that_was_tampered_with_gets_nothing_and_is_told(case: str) -> None:
    meta, spec, request = half()
    changed = deepcopy(spec)
    TAMPERED[case](changed)
    assert changed != spec
    found = lacks(typed(meta, changed), request, IMAGE)
    assert found.startswith("spec")
    assert "kubectl gpu render" in found


def test_sidecars_that_others_put_in_front_change_nothing() -> None:
    meta, spec, request = half()
    proxy = {"name": "proxy", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}
    spec["containers"].insert(0, proxy)
    spec["initContainers"].insert(0, {**proxy, "name": "setup"})
    assert lacks(typed(meta, spec), request, IMAGE) == ""


def test_what_nodes_clouds_and_namespaces_add_to_the_init_container_is_theirs() -> None:
    meta, spec, request = half()
    first = spec["initContainers"][0]
    first["terminationMessagePath"] = "/dev/termination-log"
    first["imagePullPolicy"] = "Always"
    first["securityContext"]["runAsUser"] = 1000650000
    first["resources"] = {"requests": {"cpu": "10m"}, "limits": {"memory": "1Gi"}}
    first["env"].append({"name": "AWS_ROLE_ARN", "value": "arn"})
    for path in ("kubernetes.io", "eks.amazonaws.com"):
        mount = {"name": path, "mountPath": f"/var/run/secrets/{path}/serviceaccount"}
        first["volumeMounts"].append({**mount, "readOnly": True})
    assert lacks(typed(meta, spec), request, IMAGE) == ""


def test_without_the_library_none_is_asked_for() -> None:
    spec = {"containers": [{"name": "main"}]}
    notes = {"gpu-scheduler.io/gpu": "1", "gpu-scheduler.io/isolation": "framework"}
    request = request_of(words({}, notes, spec), {}, notes)
    assert isinstance(request, ShareRequest)
    made = share({"annotations": notes}, spec, Installation(IMAGE), controlled=True)
    assert made is not None
    assert lacks(typed(*made), request, None) == ""  # type: ignore[arg-type]
    assert "missing" in lacks(typed(*made), request, IMAGE)  # type: ignore[arg-type]
