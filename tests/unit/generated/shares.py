"""Pods that ask for a share by themselves: as ``jobs.share`` makes them, or with a part missing."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.ours import metadata
from tests.unit.generated.values import Obj
from tests.unit.generated.worst import MISSING

from gpu_scheduler.api import names
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation, share

CAP_IMAGE = "registry/scheduler:1"
GIVEN = Installation(CapImage(CAP_IMAGE))
LACKS = "lacks"  # a label: which part is missing, or is another one
GANG_SIZE = 2


def template(
    gpu: str,
    *,
    controlled: bool,
    labels: dict[str, str] | None = None,
    tolerations: tuple[Obj, ...] = (),
    **notes: str,
) -> Obj:
    """Metadata and spec of such a pod; ``notes``: what it says in annotations."""
    said = {f"gpu-scheduler.io/{key.replace('_', '-')}": word for key, word in notes.items()}
    metadata = {"labels": labels or {}, "annotations": {names.ASK_GPU: gpu, **said}}
    resources = {"requests": {"cpu": "1"}}
    main = {"name": "main", "image": "registry/x:1", "resources": resources}
    spec = {"restartPolicy": "Always", "tolerations": [*tolerations], "containers": [main]}
    made = share(metadata, spec, GIVEN, controlled=controlled)
    assert made is not None and isinstance(made[0], dict), made
    return {"metadata": made[0], "spec": made[1]}


def ring(gpu: str, *, controlled: bool, **more: Any) -> Obj:
    """A member of a gang that is complete with ``GANG_SIZE`` pods."""
    more["labels"] = {**more.get("labels", {}), names.LABEL_GANG: "ring"}
    return template(gpu, controlled=controlled, gang_size=str(GANG_SIZE), **more)


def member(gpu: str, *, controlled: bool, group: str = "ring", **more: Any) -> Obj:
    """A member of a gang that is Kubernetes' own: its PodGroup says how many start together."""
    made = template(gpu, controlled=controlled, **more)
    return {**made, "spec": {**made["spec"], "schedulingGroup": {"podGroupName": group}}}


def pod_group(name: str, namespace: str, policy: Any) -> Obj:
    """A PodGroup as the API server hands it out; ``policy``: {} for pods that start one by one."""
    meta = metadata(name, namespace)
    return {"metadata": meta, "spec": {"schedulingPolicy": policy}, "status": {}}


hostile_pod_groups = st.builds(
    pod_group,
    st.sampled_from(["ring", "none"]),
    st.just("team-bad"),
    st.one_of(
        st.sampled_from([{}, {"basic": {}}, {"gang": {}}]),
        st.builds(
            lambda least: {"gang": {"minCount": least}},
            st.sampled_from([0, 1, 2, 3, 1000, 1001, 2**31 - 1, -1]),
        ),
    ),
)


def _no_variable(pod: Obj) -> None:
    main = pod["spec"]["containers"][0]
    main["env"] = [each for each in main["env"] if each["name"] != names.VISIBLE_DEVICES]


def _all_devices(pod: Obj) -> None:
    pod["spec"]["containers"][0]["env"].append({"name": names.VISIBLE_DEVICES, "value": "all"})


def _no_library(pod: Obj) -> None:
    pod["spec"]["initContainers"] = []


def _another_library(pod: Obj) -> None:
    pod["spec"]["initContainers"][0]["image"] = "registry/another:1"


def _no_file(pod: Obj) -> None:
    pod["spec"]["containers"][0]["volumeMounts"].pop()


def _no_volume(pod: Obj) -> None:
    pod["spec"]["volumes"].pop()


def _sidecar(pod: Obj) -> None:
    pod["spec"]["containers"].append({"name": "side", "image": "registry/x:1", "env": []})


def _words(pod: Obj) -> None:
    pod["metadata"]["annotations"][names.ASKED] = f"0:{names.ASK_GPU}=1.5"


def _claim(pod: Obj) -> None:
    claim = {"persistentVolumeClaim": {"claimName": MISSING}}
    pod["spec"]["volumes"].append({"name": "data", **claim})


PARTS: dict[str, Callable[[Obj], None]] = {
    "variable": _no_variable,
    "one-variable": _all_devices,
    "library": _no_library,
    "our-library": _another_library,
    "file": _no_file,
    "volume": _no_volume,
    "void": _sidecar,
    "words": _words,
    "claim": _claim,
}


def without(part: str, made: Obj) -> Obj:
    """A pod that lacks a part of its form, and says so in a label for whoever checks."""
    PARTS[part](made)
    made["metadata"]["labels"] = {**made["metadata"]["labels"], LACKS: part}
    return made


def named(made: Obj, namespace: str, name: str, uid: str) -> Obj:
    """Such a pod as somebody made it who is no controller."""
    meta = {
        **made["metadata"],
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": meta, "spec": made["spec"], "status": {"phase": "Pending"}}


@st.composite
def hostile_shares(draw: st.DrawFn) -> Obj:
    """A pod of team-bad that asks by itself; most lack a part of their form."""
    controlled = draw(st.booleans())
    gpu = draw(st.sampled_from(["0.25", "0.5", "1", "2"]))
    notes = draw(
        st.sampled_from([{}, {}, {"type": "training"}, {"priority": "100"}, {"time_limit": "1"}])
    )
    make = draw(st.sampled_from([template, template, ring, member]))
    made = make(gpu, controlled=controlled, **notes)
    part = draw(st.sampled_from([*PARTS, "", ""]))
    if part:
        made = without(part, made)
    if controlled:
        owner = {"kind": "ReplicaSet", "name": "bad", "uid": "uid-bad-set", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
    name = draw(st.sampled_from(["s0", "s1"]))
    return named(made, "team-bad", name, f"uid-team-bad-{name}")
