"""GPUJobs, GPUProjects, GPUClasses and GPUNodes: as users and a stolen agent's token write them."""

from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.values import (
    LONG,
    Obj,
    integers,
    no_quantities,
    quantities,
    texts,
)

from gpu_scheduler.api.names import API_VERSION, GATE

GPUJOB_NAMES = ("bad-job-0", "bad-job-1")


def metadata(name: str, namespace: str = "") -> Obj:
    """As the API server gives it to a new object."""
    return {
        "name": name,
        "uid": f"uid-{namespace}-{name}",
        "generation": 1,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **({"namespace": namespace} if namespace else {}),
    }


def gpujob(name: str, namespace: str, **spec: Any) -> Obj:
    """A GPUJob of one image."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": metadata(name, namespace),
        "spec": {"image": "registry/x:1", **spec},
    }


def gpuproject(name: str, namespaces: list[str], **spec: Any) -> Obj:
    """A GPUProject."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUProject",
        "metadata": metadata(name),
        "spec": {"namespaces": namespaces, **spec},
    }


gpu_amounts = st.one_of(
    st.sampled_from([0.25, 0.5, 1, 2, 8, 0.3, 0.001, 0, -1, 1.5, 1e9, 1e-9]), integers, texts
)

templates = st.sampled_from(
    [
        {"spec": {"containers": [{"name": "main", "image": "a:1"}]}},
        {"spec": {"containers": [{"name": "main", "image": "a:1"}], "schedulingGates": [GATE]}},
        {"spec": {"containers": [], "priority": 10**9}},
        {"spec": {"containers": [None]}},
        {
            "spec": {
                "containers": [{"name": "main", "image": "a:1"}],
                "volumes": [{"name": "work", "nfs": {"server": "a", "path": "/"}}, {"name": 1}],
            }
        },
        {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "10P"}}}]}},
        {"metadata": {"labels": {"a": "b"}}, "spec": None},
        {},
    ]
)

_LOSS = {"metric": "loss"}
sweeps = st.sampled_from(
    [
        {"algorithm": "grid", "parameters": {"lr": {"values": [1, 2]}}},
        {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}, "objective": _LOSS},
        {"algorithm": "random", "parameters": {"lr": {"logUniform": [1e-300, 1e300]}}},
        {
            "algorithm": "grid",
            "parameters": {f"p{i}": {"values": list(range(100))} for i in range(5)},
        },
        {
            "algorithm": "halton",
            "parameters": {"lr": {"int": [0, 3]}},
            "objective": {**_LOSS, "goal": "maximize", "target": 1e308},
            "resultFrom": {"logRegex": "loss=([0-9.]+)"},
        },
        {
            "algorithm": "random",
            "parameters": {"lr": {"uniform": [0, 1]}},
            "objective": _LOSS,
            "resultFrom": {"logRegex": "(?:(?:a{0,30}){0,30}b?)*loss=([0-9.]+)"},
        },
        {"algorithm": "tpe", "parameters": {}, "objective": _LOSS},
        {"algorithm": LONG},
    ]
)


_CLAIM = {"persistentVolumeClaim": {"claimName": "work"}}
checkpoints = st.sampled_from(
    [
        {"volume": _CLAIM},
        {"volume": {"hostPath": {"path": "/scratch", "type": "Directory"}}, "mountPath": "/a"},
        {"volume": {"name": "work"}},
        {"volume": {**_CLAIM, "nfs": {"server": LONG, "path": "/.."}}, "mountPath": "/etc"},
        {"volume": {"name": 1}},
        {"volume": {}},
        {},
    ]
)


@st.composite
def hostile_gpujobs(draw: st.DrawFn) -> Obj:
    """A GPUJob of team-bad: possible, impossible, or nonsense."""
    spec: Obj = {}
    fields: dict[str, st.SearchStrategy[Any]] = {
        "gpu": gpu_amounts,
        "gpuMemory": st.one_of(quantities, no_quantities, texts),
        "gpuDevices": integers,
        "gpuModels": st.sampled_from([["A100"], [""], ["bad-class"], ["x"] * 40, [LONG]]),
        "shape": texts,
        "minComputeCapability": texts,
        "priority": integers,
        "parallelism": st.one_of(st.integers(0, 4), integers),
        "completions": st.one_of(st.integers(0, 4), integers),
        "retries": integers,
        "timeLimitSeconds": integers,
        "ttlSecondsAfterFinished": integers,
        "suspend": st.booleans(),
        "type": texts,
        "isolation": texts,
        "resources": st.fixed_dictionaries(
            {"requests": st.dictionaries(st.sampled_from(["cpu", "memory", ""]), quantities)}
        ),
        "template": templates,
        "sweep": sweeps,
        "checkpoint": checkpoints,
        "roles": st.sampled_from(
            [
                [{"name": "worker", "replicas": 2, "gpu": 1}],
                [{"name": "a", "replicas": 10**6, "gpu": 1}, {"name": "a", "replicas": 0}],
                [{}],
            ]
        ),
        "gang": st.booleans(),
        "topology": st.sampled_from([{"key": "topology.kubernetes.io/zone"}, {"key": LONG}, {}]),
        "env": st.sampled_from([[{"name": "A", "value": "b"}], [{"name": "", "value": None}]]),
        "command": st.sampled_from([["a"], [""], [LONG] * 10]),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=5, unique=True))
    for name in chosen:
        spec[name] = draw(fields[name])
    if not {"gpu", "gpuMemory", "roles"} & spec.keys() and draw(st.booleans()):
        spec["gpu"] = draw(gpu_amounts)
    good = gpujob(draw(st.sampled_from(GPUJOB_NAMES)), "team-bad", **spec)
    good["status"] = draw(st.sampled_from([{}, {"phase": "Running"}, {"conditions": []}]))
    return good


@st.composite
def hostile_gpuprojects(draw: st.DrawFn) -> Obj:
    """A GPUProject that claims team-bad, nothing, or too much; healthy projects came before it."""
    amounts = st.one_of(st.sampled_from([0, 0.5, 1, 2.5]), gpu_amounts)
    good = gpuproject(
        draw(st.sampled_from(["project-bad", "project-bad-too"])),
        draw(st.sampled_from([["team-bad"], ["team-bad", "team-bad"], ["team-a"], [], [LONG]])),
        quota=draw(amounts),
        limit=draw(amounts),
        weight=draw(integers),
        quotaByModel=draw(st.dictionaries(st.sampled_from(["A100", "", "x"]), amounts, max_size=2)),
        overCapPolicy=draw(texts),
        minRuntimeSeconds=draw(integers),
    )
    good["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    return good


@st.composite
def hostile_gpuclasses(draw: st.DrawFn) -> Obj:
    """A GPUClass that means nothing, everything, or itself."""
    good = {
        "apiVersion": API_VERSION,
        "kind": "GPUClass",
        "metadata": metadata(draw(st.sampled_from(["bad-class", "bad-class-too"]))),
        "spec": {
            "models": draw(st.sampled_from([["A100"], [], [""], ["bad-class"], [LONG], None])),
            "gpu": draw(gpu_amounts),
            "gpuMemory": draw(quantities),
        },
    }
    return good


@st.composite
def hostile_gpunodes(draw: st.DrawFn) -> Obj:
    """A GPUNode of node bad-0, or of one that is not there."""
    device = {
        "uuid": draw(st.sampled_from(["GPU-x", "GPU-y", "", "0", LONG])),
        "index": draw(integers),
        "model": draw(st.one_of(st.just("NVIDIA-A100-PCIE-40GB"), texts)),
        "memoryMib": draw(st.one_of(st.just(40_960), integers)),
        "usableMib": draw(st.one_of(st.just(40_000), integers)),
        "computeCapability": draw(st.one_of(st.just("8.0"), texts)),
        "healthy": draw(st.booleans()),
        "message": draw(texts),
        "foreignProcesses": [{"pid": draw(integers), "name": draw(texts), "usedMib": 1}],
    }
    container = {
        "namespace": "team-bad",
        "pod": draw(texts),
        "uid": draw(st.sampled_from(["uid-team-bad-p0", "", "uid-team-a-good-0"])),
        "container": draw(integers),
        "isolation": draw(texts),
        "overCapSince": draw(texts),
        "computePercent": draw(st.one_of(integers, texts, st.booleans())),
        "message": draw(texts),
    }
    good: Obj = {
        "apiVersion": API_VERSION,
        "kind": "GPUNode",
        "metadata": metadata(draw(st.sampled_from(["bad-0", "nowhere"]))),
        "spec": {},
        "status": {
            "driverVersion": draw(texts),
            "isolation": draw(texts),
            "gpus": draw(integers),
            "devices": draw(st.sampled_from([[device], [device, device], [], None])),
            "containers": draw(st.sampled_from([[container], [container] * 3, None])),
        },
    }
    if draw(st.integers(0, 3)) == 0:
        good["status"] = None
    return good
