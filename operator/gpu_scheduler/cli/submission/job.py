"""The GPUJob that a command line and a file mean: pure, without a cluster.

Flags beat the file. What the short form of a GPUJob has no field for (volumes, shared memory) turns
it into a template with the same container. The result is judged by the rules of the operator, and
what is wrong is said in the words of the flags.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.gpujob import MAIN_CONTAINER, GPUJobSpec
from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.validate import problems, read
from gpu_scheduler.cli.job_names import checked
from gpu_scheduler.cli.submission.flag_values import Mount, number, pairs, parameter, seconds

Body = dict[str, Any]

_SHORT_FORM = ("image", "imagePullPolicy", "command", "args", "env", "workingDir", "resources")
_SERVERS = frozenset(  # of the metadata: what an API server writes
    "uid resourceVersion generation creationTimestamp managedFields selfLink".split()
)
_AMOUNTS = ("gpu", "gpuMemory", "shape")
_FLAGS = {
    "metadata.name": "NAME",
    "spec.image": "--image",
    "spec.gpu": "--gpu",
    "spec.gpuMemory": "--gpu-memory",
    "spec.gpuDevices": "--gpu-devices",
    "spec.gpuModels": "--gpu-models",
    "spec.shape": "--shape",
    "spec.parallelism": "--parallelism",
    "spec.completions": "--completions",
    "spec.retries": "--retries",
    "spec.priority": "--priority",
    "spec.timeLimitSeconds": "--time-limit",
    "spec.ttlSecondsAfterFinished": "--ttl-after-finish",
    "spec.workingDir": "--working-dir",
    "spec.imagePullPolicy": "--image-pull-policy",
    "spec.args": "arguments behind --",
    "spec.env": "--env",
    "spec.sweep.parameters": "--param",
    "spec.resources.requests.cpu": "--cpu",
    "spec.resources.requests.memory": "--memory",
    "spec.resources.limits.cpu": "--cpu-limit",
    "spec.resources.limits.memory": "--memory-limit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What a command line says; None and empty: nothing.

    Attributes:
        arguments: what follows ``--``; None: there was no ``--``.
        is_command: that is the program with its arguments, not arguments alone.
        user, group: numbers that the program runs as.
    """

    name: str = ""
    namespace: str = ""
    image: str | None = None
    pull_policy: str | None = None
    gpu: str | None = None
    gpu_memory: str | None = None
    gpu_devices: int | None = None
    gpu_models: str | None = None
    shape: str | None = None
    interactive: bool = False
    priority: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    retries: int | None = None
    time_limit: str | None = None
    ttl: str | None = None
    parameters: Sequence[str] = ()
    mounts: Sequence[Mount] = ()
    env: Sequence[str] = ()
    labels: Sequence[str] = ()
    annotations: Sequence[str] = ()
    working_dir: str | None = None
    cpu: str | None = None
    memory: str | None = None
    cpu_limit: str | None = None
    memory_limit: str | None = None
    large_shm: bool = False
    host_ipc: bool = False
    host_network: bool = False
    user: int | None = None
    group: int | None = None
    job_dir: str | None = None
    arguments: Sequence[str] | None = None
    is_command: bool = False

    @property
    def needs_template(self) -> bool:
        """Whether the short form of a GPUJob has no field for some of it."""
        ids = self.user is not None or self.group is not None
        return bool(self.mounts or self.large_shm or self.host_ipc or self.host_network or ids)


def job_of(options: SubmitOptions, file: Mapping[str, Any] | None = None) -> Body:
    """The GPUJob, ready to be sent.

    Raises:
        ValueError: what is wrong with the flags or the file, a line for each.
    """
    body = _of_file(file)
    name = options.name or str(body["metadata"].get("name") or "")
    if not name:
        raise ValueError("how is the job to be called? NAME is missing")
    body["metadata"]["name"] = checked(name, "a job's name")
    if options.namespace:
        body["metadata"]["namespace"] = checked(options.namespace, "a namespace")
    for key, said in (("labels", options.labels), ("annotations", options.annotations)):
        if said:
            old = body["metadata"].get(key) or {}
            body["metadata"][key] = {**old, **pairs(f"--{key.removesuffix('s')}", said)}
    spec = body["spec"]
    _scalars(spec, options)
    _amounts(spec, options)
    _sweep(spec, options.parameters)
    _container(spec, options)
    _judge(name, body)
    return body


def _of_file(file: Mapping[str, Any] | None) -> Body:
    body: Body = {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": {}, "spec": {}}
    body |= deepcopy(dict(file or {}))
    body.pop("status", None)
    for part in ("metadata", "spec"):
        body[part] = {} if body[part] is None else body[part]
        if not isinstance(body[part], dict):
            raise ValueError(f"the file's {part} must be an object with fields")
    spec = read(GPUJobSpec, body["spec"])
    if isinstance(spec, tuple):
        raise ValueError("\n".join(f"the file's {each}" for each in spec))
    body["metadata"] = {k: v for k, v in body["metadata"].items() if k not in _SERVERS}
    for key in ("labels", "annotations"):
        if not isinstance(body["metadata"].get(key) or {}, dict):
            raise ValueError(f"the file's metadata.{key} must be an object with fields")
    known = {field.alias or name for name, field in GPUJobSpec.model_fields.items()}
    for name in body["spec"]:
        if name not in known:
            raise ValueError(f"the file's spec.{name}: a GPUJob has no such field")
    return body


def _scalars(spec: Body, options: SubmitOptions) -> None:
    said = {
        "type": "interactive" if options.interactive else None,
        "priority": options.priority,
        "parallelism": options.parallelism,
        "completions": options.completions,
        "retries": options.retries,
        "timeLimitSeconds": seconds("--time-limit", options.time_limit),
        "ttlSecondsAfterFinished": seconds("--ttl-after-finish", options.ttl),
    }
    spec.update({name: value for name, value in said.items() if value is not None})


def _amounts(spec: Body, options: SubmitOptions) -> None:
    said = {
        "gpu": None if options.gpu is None else number("--gpu", options.gpu),
        "gpuMemory": options.gpu_memory,
        "shape": options.shape,
    }
    given = [name for name in _AMOUNTS if said[name] is not None]
    if len(given) > 1:
        flags = " and ".join(_FLAGS[f"spec.{name}"] for name in given)
        raise ValueError(f"{flags} both say how much GPU; say one of them")
    if given:
        for name in (*_AMOUNTS, "gpuDevices"):
            spec.pop(name, None)
        spec[given[0]] = said[given[0]]
    if options.gpu_devices is not None:
        spec["gpuDevices"] = options.gpu_devices
    if options.gpu_models is not None:
        models = [model.strip() for model in options.gpu_models.split(",")]
        if not all(models):
            raise ValueError("--gpu-models: write one model, or several with commas: A100,H100")
        spec["gpuModels"] = list(dict.fromkeys(models))


def _sweep(spec: Body, parameters: Sequence[str]) -> None:
    if not parameters:
        return
    sweep = spec.get("sweep") or {"algorithm": "grid"}
    if sweep.get("algorithm") == "list":
        raise ValueError("--param: the file lists its trials one by one; change them there")
    said = dict[str, Any]()
    for text in parameters:
        name, values = parameter(text)
        if name in said:
            raise ValueError(f"--param {name} is said twice; write all of its values in one")
        said[name] = {"values": values}
    spec["sweep"] = {**sweep, "parameters": {**(sweep.get("parameters") or {}), **said}}


def _container(spec: Body, options: SubmitOptions) -> None:
    """Say what concerns the container where the job has it."""
    if options.needs_template and spec.get("roles"):
        raise ValueError("volumes and hosts' parts go into the templates of the roles in the file")
    if options.needs_template and "template" not in spec:
        short = {name: spec.pop(name) for name in _SHORT_FORM if name in spec}
        main = {"name": MAIN_CONTAINER, **short}
        pod = {"automountServiceAccountToken": False, "containers": [main]}
        spec["template"] = {"spec": pod}
    container = spec if spec.get("template") is None else _first(spec["template"])
    said = {
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "workingDir": options.working_dir,
    }
    container.update({name: value for name, value in said.items() if value is not None})
    if options.is_command:
        if not options.arguments:
            raise ValueError("--command: what follows -- is the program; nothing follows")
        container["command"] = list(options.arguments)
        container.pop("args", None)
    elif options.arguments:
        container["args"] = list(options.arguments)
    env = pairs("--env", options.env)
    if options.job_dir is not None:
        if not options.job_dir:
            raise ValueError("--job-dir is empty; write the folder")
        container["args"] = [*(container.get("args") or ()), "--job-dir", options.job_dir]
        env["JOB_DIR"] = options.job_dir
    if env:
        kept = [each for each in container.get("env") or () if each.get("name") not in env]
        container["env"] = kept + [{"name": k, "value": v} for k, v in env.items()]
    _resources(container, options)
    if options.needs_template:
        _template(spec["template"]["spec"], container, options)


def _first(template: Any) -> Body:
    """The container of a template that flags are about."""
    pod = template.get("spec")
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise ValueError("the file's spec.template.spec.containers: needs at least one container")
    first: Body = containers[0]
    _check_lists("spec.template.spec", pod, volumes=dict)
    where = "spec.template.spec.containers[0]"
    _check_lists(where, first, args=str, env=dict, volumeMounts=dict)
    amounts = first.get("resources") or {}
    if not isinstance(amounts, dict) or not all(isinstance(v, dict) for v in amounts.values()):
        raise ValueError(f"the file's {where}.resources must have requests and limits")
    return first


def _check_lists(where: str, body: Body, **kinds: type) -> None:
    for key, kind in kinds.items():
        found = body.get(key) or []
        if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
            raise ValueError(f"the file's {where}.{key} is not as in a pod")


def _resources(container: Body, options: SubmitOptions) -> None:
    for kind, said in (
        ("requests", {"cpu": options.cpu, "memory": options.memory}),
        ("limits", {"cpu": options.cpu_limit, "memory": options.memory_limit}),
    ):
        amounts = {name: amount for name, amount in said.items() if amount is not None}
        if amounts:
            resources = dict(container.get("resources") or {})
            resources[kind] = {**(resources.get(kind) or {}), **amounts}
            container["resources"] = resources


def _template(pod: Body, container: Body, options: SubmitOptions) -> None:
    mounts = list(options.mounts)
    if options.large_shm:
        mounts.append(Mount({"emptyDir": {"medium": "Memory"}}, "/dev/shm"))
    targets = [mount.target for mount in mounts]
    for target in targets:
        if targets.count(target) > 1:
            raise ValueError(f"two volumes are to be at {target}; each needs a place of its own")
    if mounts:
        volumes = list(pod.get("volumes") or ())
        kept = [m for m in container.get("volumeMounts") or () if m.get("mountPath") not in targets]
        kept += [{"name": mount.put(volumes), **mount.place()} for mount in mounts]
        pod["volumes"], container["volumeMounts"] = volumes, kept
    pod.update({"hostIPC": True} if options.host_ipc else {})
    pod.update({"hostNetwork": True} if options.host_network else {})
    ids = {"runAsUser": options.user, "runAsGroup": options.group}
    said = {name: value for name, value in ids.items() if value is not None}
    if said:
        pod["securityContext"] = {**(pod.get("securityContext") or {}), **said}


def _judge(name: str, body: Body) -> None:
    raw = body["spec"]
    spec = read(GPUJobSpec, raw)
    found = list(spec) if isinstance(spec, tuple) else problems(name, "", spec)
    said = list(dict.fromkeys(_in_flags(found, raw)))
    if said:
        raise ValueError("\n".join(said))


def _in_flags(found: Sequence[Problem], spec: Body) -> Iterator[str]:
    has_source = spec.get("image") or spec.get("template") or spec.get("roles")
    amounts = (*_AMOUNTS, "containers", "roles")
    has_amount = any(spec.get(name) is not None for name in amounts)
    if not has_source:
        yield "which image? write --image IMAGE, or name a file with a GPUJob: -f FILE"
    if not has_amount:
        yield "how much GPU? write for example --gpu 0.5, --gpu 2 or --gpu-memory 8Gi"
    for problem in found:
        if problem.field == "spec" and not (has_source and has_amount):
            continue
        message = re.sub(r"\bgpu(?:Devices|Memory|Models)\b", _of_word, problem.message)
        yield f"{_flag(problem.field)}: {message}"


def _of_word(field: re.Match[str]) -> str:
    return _FLAGS[f"spec.{field[0]}"]


def _flag(field: str) -> str:
    """The flag that says a field, or else the field."""
    part = field = field.replace("spec.sweep, parameter", "--param")
    while part:
        if part in _FLAGS:
            rest = field[len(part) :].lstrip(".")
            return f"{_FLAGS[part]} {rest}".strip() if part != field else _FLAGS[part]
        cut = max(part.rfind("."), part.rfind("["))
        part = part[:cut] if cut > 0 else ""
    return field
