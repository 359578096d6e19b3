"""What if: objects from YAML files added to a cluster's, and objects taken away.

An added GPUJob is judged like one that is created; a mistake names file, document and field. Any
other kind takes the place of an object of the same name, so a changed quota is an added
GPUProject. A node that is taken away loses its pods, and Jobs start theirs again.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.model import ApiModel, json_name
from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.api.validate import read
from gpu_scheduler.core.model import quantity
from gpu_scheduler.kube.objects import Node
from gpu_scheduler.limits.bounded import quoted
from gpu_scheduler.runtime.informers.custom_resources import (
    gpuclass_record,
    gpujob_record,
    project_record,
)
from gpu_scheduler.simulate.cluster_objects import NAMESPACED, Objects, Ref, SimulationError, ref_of

_VERSIONS = {
    "GPUJob": API_VERSION,
    "GPUProject": API_VERSION,
    "GPUNode": API_VERSION,
    "GPUClass": API_VERSION,
    "Node": "v1",
}
# Often in the same files; no plan depends on them.
_PASSED_OVER = ("Namespace", "ConfigMap", "Secret", "Service", "ServiceAccount")
# Said by the API server alone; a file that came out of a cluster may bear them.
_NOT_ASKED = ("resourceVersion", "generation", "deletionTimestamp")
_SHORT = {"gj": "GPUJob", "gp": "GPUProject", "gn": "GPUNode", "gc": "GPUClass", "no": "Node"}
_KIND_OF = {kind.lower(): kind for kind in _VERSIONS} | {k.lower() + "s": k for k in _VERSIONS}
_KIND_OF |= {"gpuclasses": "GPUClass"} | _SHORT
_SPECS: dict[str, type[ApiModel]] = {
    "GPUJob": GPUJobSpec,
    "GPUProject": GPUProjectSpec,
    "GPUClass": GPUClassSpec,
}


def add(objects: Objects, path: Path, namespace: str, now: str) -> None:
    """Add every object of a file.

    Args:
        objects: what there is so far.
        path: YAML, one or several documents; a v1 List counts as its items; - is standard input.
        namespace: of objects that do not say.
        now: when they are created, RFC 3339.

    Raises:
        SimulationError: the file or an object in it cannot be used.
    """
    for where, body in _documents(path):
        if isinstance(body, dict) and body.get("kind") in _PASSED_OVER:
            continue
        _add(objects, where, body, namespace, now)
        objects.changes.append(f"with {ref_of(body['kind'], body)} ({path.name})")


def add_gpujobs(objects: Objects, text: str, now: str) -> None:
    """Add the GPUJobs of a text that somebody pasted.

    Raises:
        SimulationError: one cannot be used, or is none.
    """
    for where, body in _objects("the manifest", text):
        kind = body.get("kind") if isinstance(body, dict) else None
        if kind != "GPUJob":
            raise SimulationError(f"{where}: kind: {quoted(kind)}; paste a GPUJob")
        _add(objects, where, body, "default", now)


def remove(objects: Objects, what: str, namespace: str) -> None:
    """Take an object away: 'node/dell-3', 'gpujob/train' or 'gpujob/team-a/train'.

    Raises:
        SimulationError: no such kind or object.
    """
    kind_name, _, rest = what.partition("/")
    kind = _KIND_OF.get(kind_name.lower())
    if kind is None or not rest:
        raise SimulationError(
            f"--remove {what}: KIND/NAME with one of the kinds {', '.join(_VERSIONS)}"
        )
    ref = Ref(kind, "", rest)
    if kind in NAMESPACED:
        given, slash, name = rest.partition("/")
        ref = Ref(kind, given, name) if slash else Ref(kind, namespace, rest)
    body = objects.bodies.pop(ref, None)
    if body is None:
        alike = sorted(r.name for r in objects.of_same_kind(ref))
        known = f"; there are {', '.join(alike[:5])}" if alike else ""
        raise SimulationError(f"--remove {what}: there is no {ref}{known}")
    if kind == "Node":
        objects.lost_nodes.add(ref.name)
    for own in objects.owned_by(str(body["metadata"].get("uid", ""))) if kind == "GPUJob" else ():
        del objects.bodies[own]
    objects.changes.append(f"without {ref}")


def _documents(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise SimulationError(f"{path}: {said}") from None
    return _objects(str(path), text)


def _objects(name: str, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        said = getattr(error, "problem", None) or "not YAML"
        raise SimulationError(f"{name}:{line} {said}") from None
    if not documents:
        raise SimulationError(f"{name}: there is no object in it")
    for number, each in enumerate(documents, 1):
        where = f"{name}: document {number}" if len(documents) > 1 else name
        items = each.get("items") if isinstance(each, dict) and each.get("kind") == "List" else None
        for body in items if isinstance(items, list) else [each]:
            yield where, body


def _add(objects: Objects, where: str, body: object, namespace: str, now: str) -> None:
    if not isinstance(body, dict):
        raise SimulationError(f"{where}: not an object with kind and metadata")
    kind, version = body.get("kind"), body.get("apiVersion")
    if not isinstance(kind, str) or kind not in _VERSIONS:
        raise SimulationError(f"{where}: kind: {kind}; one of {', '.join(_VERSIONS)} can be added")
    if version != _VERSIONS[kind]:
        right = _VERSIONS[kind]
        raise SimulationError(f"{where}: apiVersion: {version}; of a {kind} it is {right}")
    meta = body.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise SimulationError(f"{where}: metadata.name: is missing")
    if kind in NAMESPACED:
        meta["namespace"] = meta.get("namespace") or namespace
        if not isinstance(meta["namespace"], str):
            raise SimulationError(f"{where}: metadata.namespace: is not a text")
    ref = ref_of(kind, body)
    known = objects.bodies.get(ref)
    if known is not None and kind == "GPUJob":
        raise SimulationError(
            f"{where}: {ref} exists already; give it another name, or take that one away first "
            f"with --remove gpujob/{ref.namespace}/{ref.name}"
        )
    for part in ("spec", "status"):
        if not isinstance(body.setdefault(part, {}), dict):
            raise SimulationError(f"{where}: {ref}: {part}: is not an object")
    # What the API server would fill in, of an object that is changed as it was.
    before = known["metadata"] if known is not None else {}
    meta["uid"] = before.get("uid") or f"what-if-{ref.kind}-{ref.namespace}-{ref.name}"
    meta["creationTimestamp"] = before.get("creationTimestamp") or now
    for name in _NOT_ASKED:
        meta.pop(name, None)
    if kind == "GPUJob":
        body["status"] = {}  # a new one has none, also if it is a copy of one that has ended
    if kind == "Node":
        _complete_node(body)
    _judge(where, ref, body)
    objects.put(kind, body)
    objects.added.add(ref)


def _complete_node(body: dict[str, Any]) -> None:
    """A node is taken to be up unless its status says otherwise."""
    status = body["status"]
    status.setdefault("conditions", [{"type": "Ready", "status": "True"}])
    status.setdefault("allocatable", status.get("capacity") or {})
    if isinstance(status["allocatable"], dict):  # numbers are quantities, too
        status["allocatable"] = {
            name: str(size) if isinstance(size, int | float) else size
            for name, size in status["allocatable"].items()
        }


def _judge(where: str, ref: Ref, body: Body) -> None:
    model = _SPECS.get(ref.kind)
    if model is not None:
        known = {json_name(name) for name in model.model_fields}
        for name in body["spec"]:
            if name not in known:
                raise SimulationError(f"{where}: {ref}: spec.{name}: there is no such field")
    problem = ""
    if ref.kind == "GPUJob":
        job = gpujob_record(body)
        problem = "" if job.unknown else job.problem  # of shapes all classes decide, later
    elif ref.kind == "GPUProject":
        problem = project_record(body).problem
    elif ref.kind == "GPUClass":
        problem = gpuclass_record(body).problem
    elif ref.kind == "GPUNode":
        problem = _gpunode_problem(body)
    elif ref.kind == "Node":
        problem = _node_problem(body)
    if problem:
        raise SimulationError(f"{where}: {ref}: {problem}")


def _gpunode_problem(node: Body) -> str:
    """The operator leaves out devices that it cannot read; who imagines one wants to know."""
    found = read(GPUNodeStatus, node["status"])
    if not isinstance(found, tuple):
        return ""
    return f"status{found[0].field.removeprefix('spec')}: {found[0].message}"


def _node_problem(node: Body) -> str:
    allocatable = node["status"].get("allocatable")
    if not isinstance(allocatable, Mapping) or not {"cpu", "memory"} <= allocatable.keys():
        return "status.allocatable: needs cpu and memory, such as {cpu: '64', memory: 256Gi}"
    try:
        # By way of JSON, as ``simulated_cluster`` reads it.
        msgspec.json.decode(msgspec.json.encode(node), type=Node)
    except msgspec.ValidationError as error:
        return str(error)
    for name, size in allocatable.items():
        try:
            quantity.whole(size)
        except ValueError as error:
            return f"status.allocatable.{name}: {error}"
    return ""
