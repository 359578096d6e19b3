"""GPUJobs whose rendered Jobs are kept in ``golden/``.

After a change that is meant to alter them: ``python -m tests.unit.jobs.golden_jobs`` writes the
files anew; the diff of the commit then shows what users will get.
"""

from pathlib import Path
from typing import Any

import yaml

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.segments import Segment
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.write_path import WritePath

FOLDER = Path(__file__).parent / "golden"
CAP = CapImage("registry.example/gpu-scheduler:1", "IfNotPresent")

TEMPLATE: dict[str, Any] = {
    "metadata": {
        "labels": {"team": "vision", "gpu-scheduler.io/project": "somebody-else"},
        "annotations": {
            "example.com/note": "kept",
            "gpu-scheduler.io/allocation": '{"v":1,"n":"node-0","c":{"0":{"GPU-x":[1000,1]}}}',
        },
    },
    "spec": {
        "initContainers": [
            {
                "name": "fetch",
                "image": "registry.example/fetch:1",
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
            },
            {
                "name": "logs",
                "image": "registry.example/logs:1",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "100m"}},
            },
        ],
        "containers": [
            {
                "name": "trainer",
                "image": "registry.example/train:1",
                "args": ["--limit", "$(GPU_MEMORY_LIMIT_MIB)"],
                "env": [
                    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                    {"name": "CUPY_GPU_MEMORY_LIMIT", "value": "1073741824"},
                    {"name": "LIMIT", "value": "$(GPU_MEMORY_LIMIT_MIB)"},
                ],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
            {"name": "proxy", "image": "registry.example/proxy:1"},
            {"name": "encoder", "image": "registry.example/encode:1"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


# The example of docs/gangs.md: 13 pods, 40 GPUs.
ROLES: dict[str, Any] = {
    "image": "registry.example/train:1",
    "env": [{"name": "LR", "value": "0.1"}],
    "gpuModels": ["T4"],
    "roles": [
        {"name": "master", "gpu": 4},
        {"name": "worker", "replicas": 9, "gpu": 4, "args": ["--verbose"]},
        {"name": "ps", "replicas": 3, "resources": {"requests": {"cpu": "4"}}},
    ],
}


def make_input(spec: dict[str, Any], **changes: Any) -> RenderInput:
    """A RenderInput of a spec as a user writes it, on the bind path of a full cluster."""
    values: dict[str, Any] = {
        "name": "frac05",
        "namespace": "team-a",
        "uid": "6b0f5c5e-0000-4000-8000-000000000001",
        "spec": GPUJobSpec.model_validate(spec),
        "project": "team-a",
        "path": WritePath.BIND,
        "has_runtime_class": True,
        "has_priority_class": True,
    }
    return RenderInput(**(values | changes))


SWEEP: dict[str, Any] = {
    "algorithm": "random",
    "objective": {"metric": "val_loss"},
    "parameters": {"lr": {"logUniform": [1e-5, 1e-1]}, "batch-size": {"values": [32, 64]}},
    "failFastExitCodes": [42, 3],
}

CASES: dict[str, RenderInput] = {
    "sweep_short_form": make_input(
        {
            "image": "registry.example/train:1",
            "command": ["python", "train.py"],
            "args": [
                "--lr",
                "${hparam.lr}",
                "--batch=${trialParameters.batch-size}",
                "$${hparam.lr}",
            ],
            "env": [
                {"name": "LEARNING_RATE", "value": "${hparam.lr}"},
                {"name": "TWICE", "value": "$(HPARAM_LR) $(LEARNING_RATE)"},
                {"name": "GPUJOB_TRIAL", "value": "mine"},
            ],
            "gpu": 0.5,
            "parallelism": 4,
            "completions": 2500,
            "sweep": SWEEP,
        },
        name="search",
        segment=Segment(2, 2000, 500),
    ),
    "sweep_template": make_input(
        {
            "template": {
                "spec": {
                    "initContainers": [
                        {"name": "fetch", "image": "fetch:1", "args": ["${hparam.lr}"]}
                    ],
                    "containers": [
                        {
                            "name": "trainer",
                            "image": "registry.example/train:1",
                            "terminationMessagePath": "/results/message",
                        },
                        {"name": "proxy", "image": "registry.example/proxy:1"},
                    ],
                }
            },
            "gpu": 0.5,
            "completions": 40,
            "sweep": SWEEP,
        },
        name="search",
        cap_image=CAP,
    ),
    "short_form_bind": make_input(
        {
            "image": "registry.example/quickstart:1",
            "imagePullPolicy": "IfNotPresent",
            "command": ["python", "train.py"],
            "args": ["--epochs", "3"],
            "env": [
                {"name": "LR", "value": "0.1"},
                {
                    "name": "TOKEN",
                    "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}},
                },
            ],
            "workingDir": "/app",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            "gpu": 0.5,
            "parallelism": 2,
            "completions": 4,
            "retries": 2,
            "timeLimitSeconds": 3600,
            "ttlSecondsAfterFinished": 60,
        }
    ),
    "template_two_gpu_containers": make_input(
        {
            "template": TEMPLATE,
            "containers": [{"name": "trainer", "gpu": 0.5}, {"name": "encoder", "gpu": 0.2}],
        },
        name="pair",
    ),
    "gate_path": make_input(
        {
            "template": {
                "spec": {
                    "schedulingGates": [{"name": "example.com/license"}],
                    "containers": [{"name": "trainer", "image": "registry.example/train:1"}],
                    "volumes": [
                        {"name": "data", "persistentVolumeClaim": {"claimName": "scratch"}}
                    ],
                }
            },
            "gpuMemory": "20Gi",
            "suspend": True,
        },
        name="claims",
        path=WritePath.GATE,
    ),
    "interposer": make_input(
        {
            "image": "registry.example/quickstart:1",
            "resources": {
                "requests": {"cpu": "2", "memory": "8Gi"},
                "limits": {"cpu": "2", "memory": "8Gi", "rdma/hca": "1"},
            },
            "gpu": 0.5,
        },
        cap_image=CAP,
    ),
    "interposer_two_gpu_containers": make_input(
        {
            "template": TEMPLATE,
            "containers": [{"name": "trainer", "gpu": 0.5}, {"name": "encoder", "gpu": 0.2}],
        },
        name="pair",
        cap_image=CAP,
    ),
    "gpu_in_a_sidecar": make_input(
        {
            "template": TEMPLATE,
            "containers": [{"name": "logs", "gpu": 0.2}, {"name": "trainer", "gpu": 0.5}],
        },
        name="pair",
        cap_image=CAP,
    ),
    "torch_workers": make_input(
        {**ROLES, "framework": "torch"}, name="train", role="worker", cap_image=CAP
    ),
    "tensorflow_parameter_servers": make_input(
        {**ROLES, "framework": "tensorflow"}, name="train", role="ps", cap_image=CAP
    ),
    "gang_without_roles": make_input(
        {"image": "registry.example/train:1", "gpu": 1, "gang": True, "parallelism": 2},
        name="pairs",
    ),
    "checkpoint_short_form": make_input(
        {
            "image": "registry.example/train:1",
            "args": ["--save", "$(GPUJOB_CHECKPOINT_DIR)"],
            "env": [
                {"name": "GPUJOB_CHECKPOINT_DIR", "value": "/elsewhere"},
                {"name": "GPUJOB_INDEX", "value": "../../team-b/theirs/0"},
                {"name": "MODEL", "value": "$(GPUJOB_CHECKPOINT_DIR)/model"},
            ],
            "gpu": 0.5,
            "checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "work"}}},
        },
        name="goes-on",
        path=WritePath.GATE,
    ),
    "checkpoint_in_a_volume_of_the_template": make_input(
        {
            "template": {
                "spec": {
                    **TEMPLATE["spec"],
                    "volumes": [{"name": "data", "nfs": {"server": "nas", "path": "/export"}}],
                }
            },
            "gpu": 0.5,
            "checkpoint": {"volume": {"name": "data"}, "mountPath": "/save"},
        },
        name="goes-on",
        cap_image=CAP,
    ),
    "checkpoint_of_a_sweep": make_input(
        {
            "image": "registry.example/train:1",
            "gpu": 0.5,
            "completions": 2500,
            "sweep": SWEEP,
            "checkpoint": {"volume": {"nfs": {"server": "nas", "path": "/export"}}},
        },
        name="search",
        segment=Segment(2, 2000, 500),
    ),
    "checkpoint_of_a_role": make_input(
        {
            **ROLES,
            "checkpoint": {
                "volume": {"hostPath": {"path": "/scratch", "type": "DirectoryOrCreate"}}
            },
        },
        name="train",
        role="worker",
    ),
}


def text_of(job: dict[str, Any]) -> str:
    """The Job as the golden files hold it."""
    return yaml.safe_dump(job, sort_keys=False, width=100)


if __name__ == "__main__":
    for case, job in CASES.items():
        (FOLDER / f"{case}.yaml").write_text(text_of(render(job)))
