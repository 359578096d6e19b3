"""Wrong and unlucky GPUJobs, by what is wrong with them, and what a user has to read then.

Each family makes one job of random numbers. Where it lives says what is odd about its namespace;
see ``places``. Texts of the kubelet, containerd and kube-scheduler are named by the words that a
user would search for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.e2e.gpu_jobs import container

Json = dict[str, Any]

PLAIN, RICH, POOR, FULL, ORPHAN = "plain", "rich", "poor", "full", "orphan"
NO_PODS, SMALL, STRICT = "no-pods", "small", "strict"
LIMIT = 0.5  # GPUs that the projects of POOR and FULL may hold
SHARE = 0.02  # of a GPU: many wait side by side
ADDRESS = "registry.invalid/team"  # a name that never resolves


@dataclass(frozen=True)
class Unlucky:
    """A job, and what has to be read of it.

    Attributes:
        spec: Of the GPUJob.
        reason: In ``kubectl get gj``; empty: kubectl apply itself is refused.
        words: All of them in ``kubectl describe gj``, or in what kubectl apply says.
        place: Kind of namespace.
        phase: In ``kubectl get gj``.
        event: Reason of its Event; empty: the same as ``reason``; None: there is none.
        name: Instead of one that is made of family and number.
    """

    spec: Json
    reason: str
    words: tuple[str, ...]
    place: str = PLAIN
    phase: str = "Pending"
    event: str | None = ""
    name: str = ""


Family = Callable[[Random], Unlucky]


def _word(random: Random, letters: int = 6) -> str:
    return "".join(random.choice("bcdfghjkmnpqrstvwxz") for _ in range(letters))


def _job(*containers: Json, **more: Any) -> Json:
    """A job with a pod of these containers; ``pod``: more of its pod's spec."""
    pod = {"terminationGracePeriodSeconds": 1, **more.pop("pod", {})}
    template = {"spec": {"containers": list(containers), **pod}}
    return {"gpu": SHARE, "retries": 0, "template": template, **more}


def _gpus(gpu: float) -> str:
    return f"{gpu} of a GPU" if gpu < 1 else f"{gpu} GPU"


def _failed(spec: Json, reason: str, *words: str) -> Unlucky:
    return Unlucky(spec, reason, words, phase="Failed", event="Failed")


# --- images ---


def image_of_no_registry(random: Random) -> Unlucky:
    image = f"{ADDRESS}/{_word(random)}:{random.randint(1, 9)}"
    main = {"name": "main", "image": image}
    return Unlucky(_job(main), "ImageNotPulled", ("container main", image))


def image_never_pulled(random: Random) -> Unlucky:
    image = f"{ADDRESS}/{_word(random)}:{random.randint(1, 9)}"
    main = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    return Unlucky(_job(main), "ImageNotPulled", ("container main", image, "ErrImageNeverPull"))


def image_name_in_capitals(random: Random) -> Unlucky:
    image = f"{_word(random).upper()}/model:{random.randint(1, 9)}"
    main = {"name": "main", "image": image}
    return Unlucky(_job(main), "ImageNotPulled", (image, "lowercase"))


def image_of_an_init_container(random: Random) -> Unlucky:
    name = f"fetch-{_word(random, 3)}"
    first = {"name": name, "image": f"{ADDRESS}/{name}:1", "imagePullPolicy": "Never"}
    spec = _job(container(), pod={"initContainers": [first]})
    return Unlucky(spec, "ImageNotPulled", (f"container {name}", f"{ADDRESS}/{name}:1"))


# --- programs ---


def program_that_is_missing(random: Random) -> Unlucky:
    path = f"/opt/{_word(random)}/train"
    main = {**container(), "command": [path]}
    return _failed(_job(main), "ProgramNotFound", "container main", path)


def command_that_the_shell_does_not_know(random: Random) -> Unlucky:
    word = _word(random)
    return _failed(_job(container(word)), "ProgramNotFound", "exit code 127", word)


def program_that_is_not_executable(random: Random) -> Unlucky:
    path = random.choice(["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"])
    main = {**container(), "command": [path]}
    return _failed(_job(main), "ProgramNotFound", path, "permission denied")


def exit_code(random: Random) -> Unlucky:
    code, word = random.randint(1, 120), _word(random)
    main = container(f"echo start; echo 'no column {word}' >&2; exit {code}")
    words = "container main", f"exit code {code}", f"no column {word}"
    return _failed(_job(main), "ProgramFailed", *words)


def termination_message(random: Random) -> Unlucky:
    code, word = random.randint(1, 120), _word(random)
    main = container(f"echo 'loss is nan at {word}' >/dev/termination-log; exit {code}")
    return _failed(_job(main), "ProgramFailed", f"exit code {code}", f"loss is nan at {word}")


def signal(random: Random) -> Unlucky:
    number, name = random.choice([(9, "KILL"), (15, "TERM"), (11, "SEGV"), (6, "ABRT")])
    main = container(f"sh -c 'kill -{name} $$$$'; exit $?")  # the API makes $$ of $$$$
    return _failed(_job(main), "ProgramFailed", f"exit code {128 + number}", f"SIG{name}")


def out_of_memory(random: Random) -> Unlucky:
    """The runtime hears of the kernel's kill by an event of its own, which it asks for once the
    program runs: who is killed in its first moment, or ends with the kill, reads Error."""
    limit = random.choice([24, 32, 48])
    main = container(
        "sleep 2; head -c 200m /dev/zero | tail; code=$?; sleep 2; exit $code",
        resources={"limits": {"memory": f"{limit}Mi"}},
    )
    return _failed(_job(main), "OOMKilled", "container main", "OOMKilled")


def init_container_that_fails(random: Random) -> Unlucky:
    code, word = random.randint(1, 120), _word(random)
    first = container(f"echo 'no dataset {word}'; exit {code}", name="fetch")
    spec = _job(container(), pod={"initContainers": [first]})
    return _failed(spec, "ProgramFailed", "container fetch", f"exit code {code}", word)


def one_index_of_several(random: Random) -> Unlucky:
    index, code = random.randint(0, 2), random.randint(1, 120)
    script = f'[ "$JOB_COMPLETION_INDEX" = {index} ] && exit {code}; exit 0'
    spec = _job(container(script), parallelism=3)
    return _failed(spec, "ProgramFailed", f"index {index} failed", f"exit code {code}")


def past_its_time_limit(random: Random) -> Unlucky:
    seconds = random.randint(2, 5)
    spec = _job(container(), timeLimitSeconds=seconds)
    return _failed(spec, "TimeLimitExceeded", f"spec.timeLimitSeconds ({seconds} s)")


# --- what the pod needs and is not there ---


def secret_that_is_missing(random: Random) -> Unlucky:
    name = f"token-{_word(random)}"
    source = {"secretKeyRef": {"name": name, "key": "token"}}
    main = container(env=[{"name": "TOKEN", "valueFrom": source}])
    return Unlucky(_job(main), "ContainerNotStarted", ("container main", f'secret "{name}"'))


def configmap_that_is_missing(random: Random) -> Unlucky:
    name = f"settings-{_word(random)}"
    main = container(envFrom=[{"configMapRef": {"name": name}}])
    return Unlucky(_job(main), "ContainerNotStarted", ("container main", f'configmap "{name}"'))


def key_that_is_missing(random: Random) -> Unlucky:
    key = _word(random)
    source = {"configMapKeyRef": {"name": "kube-root-ca.crt", "key": key}}
    main = container(env=[{"name": "KEY", "valueFrom": source}])
    return Unlucky(_job(main), "ContainerNotStarted", (f"couldn't find key {key}",))


def root_that_may_not_be(random: Random) -> Unlucky:
    main = container(securityContext={"runAsNonRoot": True, "runAsUser": 0})
    other = container(name=_word(random))
    return Unlucky(_job(main, other), "ContainerNotStarted", ("container main", "non-root policy"))


def volume(random: Random) -> Unlucky:
    name, kind = f"data-{_word(random)}", random.choice(["configMap", "secret"])
    source = {kind: {"name": name} if kind == "configMap" else {"secretName": name}}
    main = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    spec = _job(main, pod={"volumes": [{"name": "data", **source}]})
    return Unlucky(spec, "VolumeNotMounted", ("FailedMount", f'"{name}" not found'))


def folder_of_the_node(random: Random) -> Unlucky:
    path = f"/mnt/{_word(random)}"
    main = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    host = {"name": "data", "hostPath": {"path": path, "type": "Directory"}}
    spec = _job(main, pod={"volumes": [host]})
    return Unlucky(spec, "VolumeNotMounted", ("FailedMount", path, "is not a directory"))


def claim_that_is_missing(random: Random) -> Unlucky:
    name = f"disk-{_word(random)}"
    main = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    spec = _job(main, pod={"volumes": [claim]})
    words = f"PersistentVolumeClaim {name} of namespace", "make it, or name another"
    return Unlucky(spec, "VolumeNotMounted", words)


# --- room ---


def more_than_the_project_may(random: Random) -> Unlucky:
    gpu = random.choice([0.6, 0.75, 1])
    spec = {**_job(container()), "gpu": gpu}
    return Unlucky(spec, "ExceedsQuota", (f"needs {_gpus(gpu)}", f"its limit {LIMIT}"), POOR)


def quota_that_is_used_up(random: Random) -> Unlucky:
    gpu = random.choice([0.1, 0.25, 0.5])
    spec = {**_job(container()), "gpu": gpu}
    return Unlucky(
        spec, "WaitingForQuota", (f"needs {_gpus(gpu)}", f"its limit {LIMIT}", "first ("), FULL
    )


def more_gpus_than_a_node_has(random: Random) -> Unlucky:
    gpu = random.randint(3, 16)
    spec = {**_job(container()), "gpu": gpu}
    return Unlucky(spec, "Unsatisfiable", (f"{gpu} GPUs",), RICH)


def model_that_is_not_there(random: Random) -> Unlucky:
    model = random.choice(["H100", "B200", "L40S", "MI300X"])
    return Unlucky(_job(container(), gpuModels=[model]), "Unsatisfiable", (model, "A100"))


def memory_that_no_card_has(random: Random) -> Unlucky:
    gib = random.choice([48, 80, 141])
    spec = _job(container(), gpuMemory=f"{gib}Gi")
    del spec["gpu"]
    return Unlucky(spec, "Unsatisfiable", (f"needs {gib * 1024} MiB", "40448 MiB"), RICH)


def node_label_that_no_node_has(random: Random) -> Unlucky:
    zone = _word(random)
    spec = _job(container(), pod={"nodeSelector": {"zone": zone}})
    return Unlucky(spec, "Unsatisfiable", ("node selector", f"zone={zone}"))


def main_memory_that_no_node_has(random: Random) -> Unlucky:
    gib = random.randint(500, 4000)
    main = container(resources={"requests": {"memory": f"{gib}Gi"}})
    return Unlucky(_job(main), "Unsatisfiable", (f"needs {gib}Gi memory", "has 2"))


def near_a_pod_that_is_nowhere(random: Random) -> Unlucky:
    app = _word(random)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = _job(container(), pod={"affinity": rule})
    return Unlucky(spec, "WaitingForTopology", ("podAffinity", app))


def gate_of_somebody_else(random: Random) -> Unlucky:
    gate = f"example.com/{_word(random)}"
    spec = _job(container(), pod={"schedulingGates": [{"name": gate}]})
    return Unlucky(spec, "SchedulingGated", (gate,))


# --- what the namespace does not allow ---


def quota_of_the_namespace(random: Random) -> Unlucky:
    del random
    words = "exceeded quota: none", "pods=1", "kubectl describe resourcequota"
    return Unlucky(_job(container()), "PodsRefused", words, NO_PODS)


def limit_of_the_namespace(random: Random) -> Unlucky:
    gib = random.randint(3, 9)
    main = container(resources={"limits": {"memory": f"{gib}Gi"}})
    return Unlucky(_job(main), "Invalid", ("maximum memory usage", f"{gib}Gi"), SMALL)


def pod_security(random: Random) -> Unlucky:
    field = random.choice(["hostNetwork", "hostPID", "hostIPC"])
    spec = _job(container(), pod={field: True})
    return Unlucky(spec, "Invalid", ("PodSecurity", "baseline", "host"), STRICT)


def service_account_that_is_missing(random: Random) -> Unlucky:
    name = f"robot-{_word(random)}"
    spec = _job(container(), pod={"serviceAccountName": name})
    return Unlucky(spec, "Invalid", (f'serviceaccount "{name}" not found',))


def namespace_of_no_project(random: Random) -> Unlucky:
    del random
    return Unlucky(_job(container()), "Invalid", ("belongs to no project", "GPUProject"), ORPHAN)


# --- what cannot be meant ---


def mount_of_no_volume(random: Random) -> Unlucky:
    name = _word(random)
    main = container(volumeMounts=[{"name": name, "mountPath": "/data"}])
    field = "spec.template.spec.containers[0].volumeMounts[0].name"
    return Unlucky(_job(main), "Invalid", (field, name))


def containers_of_one_name(random: Random) -> Unlucky:
    del random
    spec = _job(container(), container())
    return Unlucky(spec, "Invalid", ("spec.template.spec.containers[1].name", "main"))


def variable_of_the_scheduler(random: Random) -> Unlucky:
    main = container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": str(random.randint(0, 7))}])
    return Unlucky(_job(main), "Invalid", ("NVIDIA_VISIBLE_DEVICES", "env[0]"))


def name_without_room_for_an_index(random: Random) -> Unlucky:
    spec = _job(container(), parallelism=1, completions=1001)
    name = _word(random, 60)
    return Unlucky(spec, "", ("metadata.name", "58"), name=name)


def name_in_capitals(random: Random) -> Unlucky:
    name = _word(random).title()
    return Unlucky(_job(container()), "", (name, "metadata.name"), name=name)


def number_that_is_none(random: Random) -> Unlucky:
    gpu = random.choice([-1, 0, 1.5, 0.0001])
    return Unlucky({**_job(container()), "gpu": gpu}, "", ("spec.gpu",))


def two_ways_to_ask(random: Random) -> Unlucky:
    spec = _job(container(), gpuMemory=f"{random.randint(1, 9)}Gi")
    return Unlucky(spec, "", ("gpu", "gpuMemory"))


def field_with_a_typo(random: Random) -> Unlucky:
    field = random.choice(["gpus", "paralelism", "timeLimit", "commands"])
    return Unlucky({**_job(container()), field: 1}, "", ("unknown field", field))


def sweep_of_which_no_trial_succeeds(random: Random) -> Unlucky:
    code = random.randint(1, 120)
    sweep = {
        "algorithm": "grid",
        "objective": {"metric": "loss", "goal": "minimize"},
        "parameters": {"lr": {"values": [0.1, 0.01]}},
    }
    main = container(f"echo ${{hparam.lr}}; exit {code}")
    spec = _job(main, parallelism=2, sweep=sweep)
    return _failed(spec, "NoTrialSucceeded", "2 trials", f"exit code {code}")


FAMILIES: tuple[Family, ...] = tuple(
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
    if name not in ("Unlucky",)
)


def generate(count: int, seed: int) -> list[tuple[str, str, Unlucky]]:
    """So many jobs: family, name and job; each family in turn, its numbers by chance."""
    random, made = Random(seed), []
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        job = family(random)
        label = family.__name__.replace("_", "-")
        made.append((label, job.name or f"{label}-{number}", job))
    return made
