"""What a tenant sends who does its worst, as `make attack` does, in sizes that a history can bear.

Full annotations and lists, templates that are large or full of nothing, claims that nobody made,
and labels of what is ours on pods that ask the device plugin.
"""

from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.ours import GPUJOB_NAMES, gpujob
from tests.unit.generated.pods import pod
from tests.unit.generated.values import Obj

from gpu_scheduler.api import names

MISSING = "missing"
"""Name of claims that nobody made: kube-scheduler binds no pod that has one."""
_FULL = 262_000  # of the characters that an object's annotations may have
_numbers = st.integers(0, 9_999)  # so that no two texts need be the same


def _annotated(number: int, key: str, start: str) -> Obj:
    text = f"{start}{number}=".ljust(_FULL, "x")
    return pod(f"w{number % 3}", scheduler="default-scheduler", annotated={key: text})


def _with_env_from(number: int, node: str) -> Obj:
    made = pod(f"w{number % 3}", node=node, scheduler="default-scheduler")
    (main,) = made["spec"]["containers"]
    main["envFrom"] = [{"prefix": "p", "configMapRef": {"name": f"c{number}"}}] * 2_000
    return made


def _labelled(label: str, value: str, resource: str, first: bool, node: str) -> Obj:
    """``first``: an init container asks, and not the container."""
    made = pod("w3", node=node, scheduler="default-scheduler")
    made["metadata"]["labels"] = {label: value}
    asks = {"resources": {"limits": {resource: "1"}}}
    if first:
        made["spec"]["initContainers"] = [{"name": "first", **asks}]
    else:
        made["spec"]["containers"][0] |= asks
    return made


_nodes = st.sampled_from(["", "bad-0", "nowhere"])
worst_pods: st.SearchStrategy[Obj] = st.one_of(
    st.builds(
        _annotated,
        _numbers,
        st.sampled_from([names.ASKED, names.ASK_MODELS, names.CHECKPOINTED, "example.com/x"]),
        st.sampled_from(["0:", "0:gpu-scheduler.io/gpu=", ""]),
    ),
    st.builds(_with_env_from, _numbers, _nodes),
    st.builds(
        _labelled,
        st.sampled_from(
            [names.LABEL_COMPONENT, names.LABEL_JOB, names.LABEL_HOLDS, names.LABEL_SHARE]
        ),
        st.sampled_from([names.COMPONENT_HOLDER, names.COMPONENT_AGENT, "x", ""]),
        st.sampled_from(["nvidia.com/gpu", names.RESOURCE_MIB, names.RESOURCE_MILLI]),
        st.booleans(),
        _nodes,
    ),
)
"""Pods of namespace team-bad."""


def _of(main: Obj, **spec: Any) -> Obj:
    return {"spec": {"containers": [{"name": "main", "image": "a:1", **main}], **spec}}


def _large(number: int) -> Obj:
    return _of({"args": [f"{number}".ljust(9_000, "x")] * 100})


def _full_of_nothing(number: int) -> Obj:
    return _of({}, foo=[{}] * (2_000 + number % 2))


_claim = {"persistentVolumeClaim": {"claimName": MISSING}}
_late = st.sampled_from(
    [
        _of({}, volumes=[{"name": "v", **_claim}]),
        _of({}, resourceClaims=[{"name": "c", "resourceClaimName": MISSING}]),
        _of({}, serviceAccountName=MISSING),
        _of({}, imagePullSecrets=[{"name": MISSING}]),
        _of({}, priorityClassName=MISSING),
        _of({}, runtimeClassName=MISSING),
    ]
)


@st.composite
def worst_gpujobs(draw: st.DrawFn) -> Obj:
    """A GPUJob of namespace team-bad."""
    templates = st.one_of(
        st.builds(_large, _numbers), st.builds(_full_of_nothing, _numbers), _late, _late
    )
    spec: Obj = {"gpu": draw(st.sampled_from([0.25, 0.5, 1])), "template": draw(templates)}
    spec["priority"] = draw(st.sampled_from([0, 100]))
    if draw(st.booleans()):
        spec["checkpoint"] = {"volume": _claim}
    made = gpujob(draw(st.sampled_from(GPUJOB_NAMES)), "team-bad", **spec)
    del made["spec"]["image"]
    return made


def starts_never(obj: Obj) -> bool:
    """Whether an object is a GPUJob whose pods lack a claim."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return False
    checkpoint, template = spec.get("checkpoint"), spec.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    saves = [checkpoint.get("volume")] if isinstance(checkpoint, dict) else []
    return _lacking(saves, pod if isinstance(pod, dict) else {})


def lacks_a_claim(pod: Obj) -> bool:
    """Whether kube-scheduler waits for a claim of a pod."""
    return _lacking([], pod["spec"])


def _lacking(volumes: list[Any], spec: Obj) -> bool:
    return any(
        each.get("resourceClaimName") == MISSING
        or each.get("persistentVolumeClaim") == _claim["persistentVolumeClaim"]
        for field in (volumes, spec.get("volumes"), spec.get("resourceClaims"))
        if isinstance(field, list)
        for each in field
        if isinstance(each, dict)
    )
