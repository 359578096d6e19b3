"""Specs that are right and specs that are wrong, for the Python rules and for the CRD's alike.

``tests/api/test_crds.py`` applies the same ones to a real API server, so the two cannot drift
apart. ``field`` is the path that the refusal names, ``says`` a part of its sentence.
"""

from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A spec that must be refused. ``python_field``: where Python is more precise than CEL."""

    spec: Spec
    field: str
    says: str
    python_field: str = ""


def job(**fields: Any) -> Spec:
    """A GPUJob's spec in the short form; fields that are None are left out."""
    spec = {"image": "trainer:1", "gpu": 0.5} | fields
    return {key: value for key, value in spec.items() if value is not None}


def pod(*names: str, **fields: Any) -> Spec:
    """A pod template with these containers."""
    containers = [{"name": name, "image": f"{name}:1"} for name in names]
    return {"spec": {"containers": containers, **fields}}


def long_job(template: Spec, **fields: Any) -> Spec:
    """A GPUJob's spec with a whole pod template."""
    return job(image=None, template=template, **fields)


def roles(*each: Spec, **fields: Any) -> Spec:
    """A GPUJob's spec with these roles; without any a master and two workers of one GPU."""
    default = ({"name": "master", "gpu": 1}, {"name": "worker", "replicas": 2, "gpu": 1})
    return job(gpu=None, roles=list(each or default), **fields)


def saving(volume: Spec | None = None, mount: str = "", **fields: Any) -> Spec:
    """A GPUJob's spec with a checkpoint: by default in a claim."""
    source = {"persistentVolumeClaim": {"claimName": "work"}} if volume is None else volume
    path = {"mountPath": mount} if mount else {}
    return {**job(), "checkpoint": {"volume": source, **path}, **fields}


def project(**fields: Any) -> Spec:
    """A GPUProject's spec."""
    spec = {"namespaces": ["team-a"], "quota": 2.5} | fields
    return {key: value for key, value in spec.items() if value is not None}


RIGHT_JOBS: dict[str, Spec] = {
    "a half": job(),
    "a tenth, which no double holds": job(gpu=0.1),
    "three tenths": job(gpu=0.3),
    "seven tenths": job(gpu=0.7),
    "an eighth": job(gpu=0.125),
    "the smallest share": job(gpu=0.001),
    "the largest share": job(gpu=0.999),
    "one GPU": job(gpu=1),
    "one GPU as a decimal": job(gpu=1.0),
    "eight GPUs": job(gpu=8),
    "memory": job(gpu=None, gpuMemory="20Gi"),
    "memory in bytes": job(gpu=None, gpuMemory=21474836480),
    "memory in millions": job(gpu=None, gpuMemory="1500M"),
    "shares of two devices": job(gpuDevices=2),
    "memory on two devices": job(gpu=None, gpuMemory="5Gi", gpuDevices=2),
    "everything of the short form": job(
        imagePullPolicy="Always",
        command=["python"],
        args=["train.py"],
        env=[{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {}}}],
        workingDir="/src",
        resources={"requests": {"cpu": 2, "memory": "4Gi"}, "limits": {"cpu": "2500m"}},
    ),
    "a template": long_job(pod("a", "b", nodeSelector={"zone": "x"})),
    "a template that says Never": long_job(pod("a", restartPolicy="Never")),
    "containers": long_job(
        pod("a", "b", "c"),
        gpu=None,
        containers=[{"name": "c", "gpu": 0.5}, {"name": "a", "gpu": 1}],
    ),
    "a container with memory on two devices": long_job(
        pod("a"), gpu=None, containers=[{"name": "a", "gpuMemory": "1Gi", "gpuDevices": 2}]
    ),
    "the container of the short form": job(gpu=None, containers=[{"name": "main", "gpu": 0.2}]),
    "any of two models": job(gpuModels=["A100", "A30"], minComputeCapability="8.0"),
    "everything about the run": job(
        type="interactive",
        priority=100,
        parallelism=2,
        completions=4,
        retries=0,
        timeLimitSeconds=60,
        ttlSecondsAfterFinished=0,
        suspend=True,
    ),
    "roles": roles(),
    "roles of every kind": roles(
        {"name": "master", "gpu": 4, "gpuModels": ["T4"], "command": ["lead"]},
        {"name": "worker", "replicas": 9, "gpuMemory": "8Gi", "gpuDevices": 2, "image": "w:1"},
        {"name": "ps", "replicas": 3, "resources": {"requests": {"cpu": 2}}},
        {"name": "extra", "gpu": 0.5, "template": pod("a")},
        framework="tensorflow",
        topology={"key": "topology.kubernetes.io/zone"},
        distinctGPUs=False,
    ),
    "roles that each bring their image": roles(
        {"name": "a", "gpu": 1, "image": "a:1"}, {"name": "b", "template": pod("b")}, image=None
    ),
    "roles over a template": roles(
        {"name": "a", "gpu": 1, "image": "a:1"}, image=None, template=pod("a", "b")
    ),
    "roles that start one by one": roles(gang=False, framework="torch"),
    "as many pods as a gang may have": roles(
        {"name": "a", "replicas": 999, "gpu": 1}, {"name": "b", "gpu": 1}
    ),
    "a gang without roles": job(gang=True, parallelism=4, completions=4, framework="torch"),
    "a gang that stays together if it can": job(
        gang=True, parallelism=2, topology={"key": "rack", "mode": "preferred"}
    ),
    "a checkpoint in a claim": saving(),
    "a checkpoint on a server": saving({"nfs": {"server": "nas", "path": "/export"}}, "/work/out"),
    "a checkpoint on the node": saving({"hostPath": {"path": "/scratch"}}),
    "a checkpoint in a folder that is made": saving(
        {"hostPath": {"path": "/scratch", "type": "DirectoryOrCreate"}}, "/etc/save"
    ),
    "a checkpoint in a volume of the template": long_job(
        pod("a", volumes=[{"name": "work", "nfs": {"server": "nas", "path": "/"}}]),
        checkpoint={"volume": {"name": "work"}},
    ),
    "a checkpoint in a volume of each role's template": roles(
        {"name": "a", "gpu": 1, "template": pod("a")},
        {"name": "b", "template": pod("b")},
        image=None,
        checkpoint={"volume": {"name": "work"}},
    ),
}

WRONG_JOBS: dict[str, Wrong] = (
    {
        "gpu 0": Wrong(job(gpu=0), "spec.gpu", "above 0"),
        "gpu negative": Wrong(job(gpu=-0.5), "spec.gpu", "above 0"),
        "gpu 1.5": Wrong(job(gpu=1.5), "spec.gpu", "whole numbers"),
        "gpu 1.001": Wrong(job(gpu=1.001), "spec.gpu", "whole numbers"),
        "gpu with four decimals": Wrong(job(gpu=0.3333), "spec.gpu", "three decimals"),
        "gpu just above 0": Wrong(job(gpu=1e-9), "spec.gpu", "three decimals"),
        "gpu just below 1": Wrong(job(gpu=0.9999), "spec.gpu", "three decimals"),
        "gpu just beside a half": Wrong(job(gpu=0.5000000000000001), "spec.gpu", "three decimals"),
        "a GPU of the device plugin as well": Wrong(
            job(resources={"limits": {"cpu": 1, "nvidia.com/gpu": 1}}),
            "spec.resources.limits",
            "remove here what names GPUs",
        ),
        "thousandths in the limits as well": Wrong(
            job(resources={"requests": {"gpu-scheduler.io/milligpu": 500}}),
            "spec.resources.requests",
            "remove here what names GPUs",
        ),
        "HAMi's memory in the limits as well": Wrong(
            job(resources={"limits": {"nvidia.com/gpumem": 3000}}),
            "spec.resources.limits",
            "remove here what names GPUs",
        ),
        "a role with a GPU of the device plugin": Wrong(
            roles({"name": "a", "gpu": 1, "resources": {"limits": {"nvidia.com/gpu": 1}}}),
            "spec.roles[0].resources.limits",
            "remove here what names GPUs",
        ),
        "memory in gigabytes": Wrong(
            job(resources={"limits": {"memory": "1GB"}}),
            "spec.resources.limits",
            "write for example",
            python_field="spec.resources.limits.memory",
        ),
        "no amount": Wrong(job(gpu=None), "spec", "set exactly one of gpu"),
        "gpu and gpuMemory": Wrong(job(gpuMemory="1Gi"), "spec", "more than one is set"),
        "gpu and containers": Wrong(
            job(containers=[{"name": "main", "gpu": 1}]), "spec", "more than one is set"
        ),
        "neither image nor template": Wrong(job(image=None), "spec", "exactly one of image"),
        "image and template": Wrong(job(template=pod("a")), "spec", "both are set"),
        "memory without a unit": Wrong(
            job(gpu=None, gpuMemory=20), "spec.gpuMemory", "for 20 GiB write 20Gi"
        ),
        "memory 0": Wrong(job(gpu=None, gpuMemory="0"), "spec.gpuMemory", "at least 1Mi"),
        "memory negative": Wrong(job(gpu=None, gpuMemory="-1Gi"), "spec.gpuMemory", "at least 1Mi"),
        "memory of no GPU": Wrong(
            job(gpu=None, gpuMemory="17Ti"), "spec.gpuMemory", "at most 16Ti"
        ),
        "memory with a unit that is none": Wrong(
            job(gpu=None, gpuMemory="20GB"), "spec.gpuMemory", "not an amount of memory"
        ),
        "devices with whole GPUs": Wrong(
            job(gpu=2, gpuDevices=2), "spec.gpuDevices", "gpu below 1"
        ),
        "devices beside containers": Wrong(
            job(gpu=None, gpuDevices=2, containers=[{"name": "main", "gpu": 0.5}]),
            "spec.gpuDevices",
            "gpu below 1",
        ),
        "0 devices": Wrong(job(gpuDevices=0), "spec.gpuDevices", "greater than or equal to 1"),
        "restartPolicy": Wrong(
            long_job(pod("a", restartPolicy="OnFailure")),
            "spec.template.spec.restartPolicy",
            "must be Never or absent",
        ),
        "a template without containers": Wrong(
            long_job({"spec": {"containers": []}}), "spec.template.spec.containers", "at least"
        ),
        "a container that the template does not have": Wrong(
            long_job(pod("a", "b"), gpu=None, containers=[{"name": "z", "gpu": 1}]),
            "spec.containers",
            "name",
            "spec.containers[0].name",
        ),
        "a container that the short form does not have": Wrong(
            job(gpu=None, containers=[{"name": "trainer", "gpu": 1}]),
            "spec.containers",
            "main",
            "spec.containers[0].name",
        ),
        "a container without an amount": Wrong(
            job(gpu=None, containers=[{"name": "main"}]), "spec.containers[0]", "none is set"
        ),
        "a container with two amounts": Wrong(
            job(gpu=None, containers=[{"name": "main", "gpu": 1, "gpuMemory": "1Gi"}]),
            "spec.containers[0]",
            "both are set",
        ),
        "a container with 1.5": Wrong(
            job(gpu=None, containers=[{"name": "main", "gpu": 1.5}]),
            "spec.containers[0].gpu",
            "whole numbers",
        ),
        "a container with devices of whole GPUs": Wrong(
            job(gpu=None, containers=[{"name": "main", "gpu": 1, "gpuDevices": 2}]),
            "spec.containers[0].gpuDevices",
            "gpu below 1",
        ),
        "no containers": Wrong(job(gpu=None, containers=[]), "spec.containers", "at least"),
        "parallelism 0": Wrong(
            job(parallelism=0), "spec.parallelism", "greater than or equal to 1"
        ),
        "completions 0": Wrong(
            job(completions=0), "spec.completions", "greater than or equal to 1"
        ),
        "too many pods": Wrong(
            job(completions=100_001), "spec.completions", "less than or equal to"
        ),
        "retries negative": Wrong(job(retries=-1), "spec.retries", "greater than or equal to 0"),
        "priority 101": Wrong(job(priority=101), "spec.priority", "less than or equal to 100"),
        "time limit 0": Wrong(
            job(timeLimitSeconds=0), "spec.timeLimitSeconds", "greater than or equal to 1"
        ),
        "gpu and roles": Wrong(roles() | {"gpu": 1}, "spec", "more than one is set"),
        "no roles": Wrong(job(gpu=None, roles=[]), "spec.roles", "at least"),
        "a role without pods": Wrong(
            roles({"name": "a", "replicas": 0, "gpu": 1}),
            "spec.roles[0].replicas",
            "greater than or equal to 1",
        ),
        "a role with 1.5": Wrong(
            roles({"name": "a", "gpu": 1.5}), "spec.roles[0].gpu", "whole numbers"
        ),
        "a role with two amounts": Wrong(
            roles({"name": "a", "gpu": 1, "gpuMemory": "1Gi"}), "spec.roles[0]", "not both"
        ),
        "a role with devices of whole GPUs": Wrong(
            roles({"name": "a", "gpu": 1, "gpuDevices": 2}),
            "spec.roles[0].gpuDevices",
            "gpu below 1",
        ),
        "a role with image and template": Wrong(
            roles({"name": "a", "gpu": 1, "image": "a:1", "template": pod("a")}),
            "spec.roles[0]",
            "not both",
        ),
        "a role with env beside a template": Wrong(
            roles({"name": "a", "gpu": 1, "args": ["x"], "template": pod("a")}),
            "spec.roles[0].args",
            "template.spec.containers",
        ),
        "a role without an image": Wrong(
            roles({"name": "a", "gpu": 1}, {"name": "b", "image": "b:1"}, image=None),
            "spec.roles",
            "a role without any",
        ),
        "more pods than a gang may have": Wrong(
            roles({"name": "a", "replicas": 1000, "gpu": 1}, {"name": "b", "gpu": 1}),
            "spec.roles",
            "at most 1000 pods",
        ),
        "roles and parallelism": Wrong(roles(parallelism=2), "spec.parallelism", "replicas"),
        "roles and completions": Wrong(roles(completions=1), "spec.completions", "replicas"),
        "a gang that runs bit by bit": Wrong(
            job(gang=True, parallelism=2, completions=4), "spec.completions", "equal to parallelism"
        ),
        "a gang of 1001": Wrong(
            job(gang=True, parallelism=1001), "spec.parallelism", "at most 1000 pods"
        ),
        "topology without a gang": Wrong(
            job(topology={"key": "zone"}), "spec.topology", "set roles, or gang: true"
        ),
        "distinct GPUs without a gang": Wrong(
            roles(gang=False, distinctGPUs=True), "spec.distinctGPUs", "set roles, or gang: true"
        ),
        "framework without other pods": Wrong(
            job(framework="torch"), "spec.framework", "set roles, or gang: true"
        ),
    }
    | {
        "a checkpoint nowhere": Wrong(
            saving({}), "spec.checkpoint.volume", "set exactly one of persistentVolumeClaim"
        ),
        "a checkpoint in two places": Wrong(
            saving({"name": "a", "hostPath": {"path": "/a"}}),
            "spec.checkpoint.volume",
            "set exactly one of persistentVolumeClaim",
        ),
        "a checkpoint in a volume of no template": Wrong(
            saving({"name": "work"}), "spec.checkpoint.volume.name", "write persistentVolumeClaim"
        ),
        "a checkpoint in a volume that a role cannot have": Wrong(
            roles(
                {"name": "a", "gpu": 1, "template": pod("a")},
                {"name": "b", "image": "b:1"},
                image=None,
                checkpoint={"volume": {"name": "work"}},
            ),
            "spec.checkpoint.volume.name",
            "write persistentVolumeClaim",
        ),
        "a claim that has no such name": Wrong(
            saving({"persistentVolumeClaim": {"claimName": "My Work"}}),
            "spec.checkpoint.volume.persistentVolumeClaim.claimName",
            "a-z, 0-9",
        ),
        "a folder of the node out of the way": Wrong(
            saving({"hostPath": {"path": "/a/../etc"}}),
            "spec.checkpoint.volume.hostPath.path",
            "without '..'",
        ),
        "a folder of a server without its beginning": Wrong(
            saving({"nfs": {"server": "nas", "path": "export"}}),
            "spec.checkpoint.volume.nfs.path",
            "absolute path",
        ),
    }
    | {
        f"a checkpoint at {path}": Wrong(saving(mount=path), "spec.checkpoint.mountPath", says)
        for path, says in {
            "work": "plain absolute path",
            "/wo\nrk": "plain absolute path",
            "/my work": "plain absolute path",
            "/": "plain absolute path",
            "/work/": "plain absolute path",
            "//work": "plain absolute path",
            "/work/../etc": "plain absolute path",
            "/work/.": "plain absolute path",
            "/work:ro": "plain absolute path",
            "/$(HOME)": "plain absolute path",
            "/etc": "must neither be nor hold",
            "/etc/gpu-scheduler": "must neither be nor hold",
            "/etc/gpu-scheduler/work": "must neither be nor hold",
            "/etc/ld.so.preload": "must neither be nor hold",
            "/opt/gpu-scheduler/lib": "must neither be nor hold",
            "/opt": "must neither be nor hold",
            "/dev/shm": "must neither be nor hold",
            "/proc": "must neither be nor hold",
        }.items()
    }
    | {
        f"{field} beside a template": Wrong(
            long_job(pod("a"), **{field: value}), f"spec.{field}", "template.spec.containers"
        )
        for field, value in {
            "imagePullPolicy": "Always",
            "command": ["x"],
            "args": ["x"],
            "env": [{"name": "A", "value": "1"}],
            "workingDir": "/",
            "resources": {"limits": {"cpu": 1}},
        }.items()
    }
)

# Refused by the schema in the API server's own words; in Python, where the sentence differs or the
# list is only read, they are not repeated.
WRONG_FOR_SCHEMA: dict[str, Wrong] = {
    "gpu as text": Wrong(job(gpu="0.5"), "spec.gpu", "must be of type number"),
    "gpu 5000": Wrong(job(gpu=5000), "spec.gpu", "less than or equal to 1024"),
    "a type that is none": Wrong(job(type="batch"), "spec.type", '"training", "interactive"'),
    "a compute capability that is none": Wrong(
        job(minComputeCapability="eight"), "spec.minComputeCapability", "should match"
    ),
    "a model twice": Wrong(job(gpuModels=["A", "A"]), "spec.gpuModels[1]", "Duplicate"),
    "17 models": Wrong(job(gpuModels=[f"m{i}" for i in range(17)]), "spec.gpuModels", "at most 16"),
    "a container twice": Wrong(
        job(gpu=None, containers=[{"name": "main", "gpu": 1}] * 2), "spec.containers[1]", "Dupl"
    ),
    "a template without a pod": Wrong(long_job({}), "spec.template.spec", "Required"),
    "a role twice": Wrong(roles({"name": "a"}, {"name": "a"}), "spec.roles[1]", "Duplicate"),
    "17 roles": Wrong(
        roles(*({"name": f"r{i}", "gpu": 1} for i in range(17))), "spec.roles", "at most 16"
    ),
    "a role name that no host can have": Wrong(
        roles({"name": "Master", "gpu": 1}), "spec.roles[0].name", "should match"
    ),
    "a topology key that is no label": Wrong(
        roles(topology={"key": "zone/"}), "spec.topology.key", "should match"
    ),
    "a topology mode that is none": Wrong(
        roles(topology={"key": "zone", "mode": "strict"}),
        "spec.topology.mode",
        '"required", "preferred"',
    ),
    "a framework that is none": Wrong(
        roles(framework="mxnet"), "spec.framework", '"torch", "tensorflow"'
    ),
    "a checkpoint without a volume": Wrong(
        job(checkpoint={"mountPath": "/work"}), "spec.checkpoint.volume", "Required"
    ),
    "a checkpoint in a misspelt volume": Wrong(
        saving({"pvc": {"claimName": "work"}}), "spec.checkpoint.volume.pvc", "unknown field"
    ),
    "a checkpoint in a claim without a name": Wrong(
        saving({"persistentVolumeClaim": {}}),
        "spec.checkpoint.volume.persistentVolumeClaim.claimName",
        "Required",
    ),
    "a checkpoint in a file of the node": Wrong(
        saving({"hostPath": {"path": "/a", "type": "File"}}),
        "spec.checkpoint.volume.hostPath.type",
        '"DirectoryOrCreate", "Directory"',
    ),
    "a misspelt field": Wrong(job(gpuModel="A100"), "spec.gpuModel", "unknown field"),
}

RIGHT_PROJECTS: dict[str, Spec] = {
    "a quota": project(),
    "no guarantee": project(quota=0),
    "everything": project(
        namespaces=["a", "b"], quota=0.1, quotaByModel={"A100": 0.3}, limit=0.7, weight=0
    ),
    "limit at quota": project(limit=2.5),
}

WRONG_PROJECTS: dict[str, Wrong] = {
    "quota negative": Wrong(project(quota=-1), "spec.quota", "must not be negative"),
    "quota with four decimals": Wrong(project(quota=2.0001), "spec.quota", "three decimals"),
    "quota of a model": Wrong(
        project(quotaByModel={"A100": -1}),
        "spec.quotaByModel[A100]",
        "must not be negative",
        "spec.quotaByModel.A100",
    ),
    "limit below quota": Wrong(project(limit=2.4), "spec.limit", "must not be below quota"),
    "limit with four decimals": Wrong(project(limit=9.0001), "spec.limit", "three decimals"),
    "no namespace": Wrong(project(namespaces=[]), "spec.namespaces", "at least 1 item"),
    "weight negative": Wrong(project(weight=-1), "spec.weight", "greater than or equal to 0"),
}

WRONG_PROJECTS_FOR_SCHEMA: dict[str, Wrong] = {
    "a namespace twice": Wrong(
        project(namespaces=["a", "a"]), "spec.namespaces[1]", "Duplicate value"
    ),
    "no quota": Wrong(project(quota=None), "spec.quota", "Required value"),
    "no name of a namespace": Wrong(
        project(namespaces=["Team A"]), "spec.namespaces[0]", "should match"
    ),
}
