"""How the library reaches GPU containers, and that nothing else of the pod changes by it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.jobs.golden_jobs import CAP, make_input

from gpu_scheduler.jobs.cap import CapImage, users_field
from gpu_scheduler.jobs.render import render
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.pod_shape import pod_resources

NAME = "gpu-scheduler-cap"
Json = dict[str, Any]


def pod_of(cap_image: CapImage | None = CAP, **spec: Any) -> Json:
    spec.setdefault("gpu", 0.5) if "containers" not in spec else None
    if "template" not in spec:
        spec.setdefault("image", "x")
    pod: Json = render(make_input(spec, cap_image=cap_image))["spec"]["template"]["spec"]
    return pod


def several(*containers: Json, **fields: Any) -> Json:
    return {"spec": {"containers": list(containers), **fields}}


def paths(container: Json) -> dict[str, Json]:
    return {mount["mountPath"]: mount for mount in container.get("volumeMounts", ())}


def test_a_gpu_container_gets_library_preload_file_and_a_state_folder() -> None:
    pod = pod_of()
    assert {"name": NAME, "emptyDir": {}} in pod["volumes"]
    mounts = paths(pod["containers"][0])
    library, preload = mounts["/opt/gpu-scheduler/lib"], mounts["/etc/ld.so.preload"]
    state = mounts["/opt/gpu-scheduler/state"]
    assert {m["name"] for m in (library, preload, state)} == {NAME}
    assert [m["subPath"] for m in (library, preload, state)] == ["lib", "ld.so.preload", "c0"]
    assert library["readOnly"] and preload["readOnly"] and not state.get("readOnly")


def test_the_init_container_comes_first_and_is_restricted() -> None:
    theirs = {"name": "fetch", "image": "f"}
    pod = pod_of(template=several({"name": "a", "image": "x"}, initContainers=[theirs]))
    ours, fetch = pod["initContainers"]
    assert fetch["name"] == "fetch" and "volumeMounts" not in fetch
    assert (ours["name"], ours["image"], ours["imagePullPolicy"]) == (
        NAME,
        CAP.name,
        "IfNotPresent",
    )
    assert ours["command"] == ["/opt/gpucap/gpucap-install", "/cap"]
    assert ours["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    context = ours["securityContext"]
    assert context["runAsNonRoot"] is True and context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "runAsUser" not in context  # the pod's, or the image's


def test_it_does_not_run_as_root_in_a_pod_that_does() -> None:
    template = several({"name": "a", "image": "x"}, securityContext={"runAsUser": 0})
    context = pod_of(template=template)["initContainers"][0]["securityContext"]
    assert context["runAsUser"] > 0


def test_without_the_image_nothing_of_it_is_rendered() -> None:
    text = str(pod_of(cap_image=None))
    for ours in (NAME, "ld.so.preload", "gpucap", "/opt/gpu-scheduler"):
        assert ours not in text


def test_an_empty_pull_policy_is_left_to_the_cluster() -> None:
    assert "imagePullPolicy" not in pod_of(cap_image=CapImage("x"))["initContainers"][0]


def test_containers_without_a_gpu_are_left_alone() -> None:
    containers = ({"name": "a", "image": "x"}, {"name": "b", "image": "y"})
    pod = pod_of(template=several(*containers), containers=[{"name": "b", "gpu": 0.5}])
    assert "volumeMounts" not in pod["containers"][0]
    assert "/etc/ld.so.preload" in paths(pod["containers"][1])


def test_each_gpu_container_has_one_of_the_sixteen_state_folders() -> None:
    """Whatever its number in the pod: the installer makes c0 to c15."""
    names = [f"n{i}" for i in range(20)]
    pod = pod_of(
        template=several(*({"name": n, "image": "x"} for n in names)),
        containers=[{"name": n, "gpu": 0.05} for n in names[4:]],
    )
    folders = [paths(c)["/opt/gpu-scheduler/state"]["subPath"] for c in pod["containers"][4:]]
    assert folders == [f"c{i}" for i in range(16)]


def test_ours_win_over_mounts_and_volumes_that_slipped_through() -> None:
    """Such a template is refused before; one that was accepted earlier must not break the cap."""
    mount = {"name": "mine", "mountPath": "/etc/ld.so.preload"}
    fields = {"volumes": [{"name": NAME, "hostPath": {"path": "/"}}]}
    pod = pod_of(template=several({"name": "a", "image": "x", "volumeMounts": [mount]}, **fields))
    assert paths(pod["containers"][0])["/etc/ld.so.preload"]["name"] == NAME
    assert [v for v in pod["volumes"] if v["name"] == NAME] == [{"name": NAME, "emptyDir": {}}]


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage"]), st.integers(1, 4).map(str), max_size=3
)
asks = st.fixed_dictionaries({"requests": amounts})


def container(name: str, resources: Json) -> Json:
    return {"name": name, "image": "x", "resources": resources}


def typed(pod: Json) -> Pod:
    return msgspec.convert({"spec": pod}, Pod)


def guaranteed(pod: Json) -> bool:
    """Kubernetes' quality of service: every container limits CPU and memory to its requests."""
    return all(
        (found := c.get("resources", {})).get("limits", {}).get(kind)
        and found["limits"][kind] == found.get("requests", found["limits"]).get(kind)
        for c in (*pod.get("initContainers", ()), *pod["containers"])
        for kind in ("cpu", "memory")
    )


@settings(deadline=None)
@given(asks, asks, asks)
def test_what_the_pod_takes_of_its_node_does_not_change(one: Json, two: Json, init: Json) -> None:
    template = several(
        container("a", one), container("b", two), initContainers=[container("i", init)]
    )
    spec: Json = {"template": template, "containers": [{"name": "b", "gpu": 0.5}]}
    with_library, without = pod_of(**spec), pod_of(cap_image=None, **spec)
    assert pod_resources(typed(with_library)) == pod_resources(typed(without))


@pytest.mark.parametrize("same", [True, False])
def test_the_quality_of_service_stays(same: bool) -> None:
    limits = {"cpu": "2", "memory": "4Gi", "rdma/hca": "1"}
    requests = {"cpu": "2" if same else "1", "memory": "4Gi"}
    pod = pod_of(resources={"requests": requests, "limits": limits})
    assert guaranteed(pod) is same
    assert "rdma/hca" not in str(pod["initContainers"][0])  # a device plugin would hand one out


def test_a_pod_that_asks_for_nothing_stays_best_effort() -> None:
    assert "resources" not in pod_of()["initContainers"][0]


@pytest.mark.parametrize(
    ("of_the_pod", "of_the_template"),
    [
        ("initContainers[2].image", "initContainers[1].image"),
        ("initContainers[1]", "initContainers[0]"),
        ("initContainers[0].image", "initContainers[0].image"),  # ours: no field of theirs
        ("containers[1].image", "containers[1].image"),
        ("volumes[0].initContainers[1]", "volumes[0].initContainers[1]"),
    ],
)
def test_fields_are_named_as_in_the_template(of_the_pod: str, of_the_template: str) -> None:
    assert users_field(of_the_pod) == of_the_template
