"""The configuration for Kustomize names every place where a GPUJob names images and objects."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import build
from gpu_scheduler.api.crd import KINDS

SHIPPED = Path(__file__).parents[2] / "packaging" / "kustomize" / "gpujobs.yaml"
OBJECTS = {
    "ConfigMap": "settings",
    "Secret": "login",
    "PersistentVolumeClaim": "data",
    "ServiceAccount": "runner",
}


def pod() -> dict[str, Any]:
    """A pod's spec that names everything in all its places."""

    def container(name: str) -> dict[str, Any]:
        return {"name": name, "image": "trainer:1", "env": env(), "envFrom": sources}

    sources = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "login"}}]
    projected = [{"configMap": {"name": "settings"}}, {"secret": {"name": "login"}}]
    return {
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "login"}],
        "initContainers": [container("fetch")],
        "containers": [container("main")],
        "volumes": [
            {"name": "a", "configMap": {"name": "settings"}},
            {"name": "b", "secret": {"secretName": "login"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "d", "projected": {"sources": projected}},
        ],
    }


def env() -> list[dict[str, Any]]:
    return [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "login", "key": "b"}}},
    ]


SPECS: dict[str, dict[str, Any]] = {
    "short": {
        "image": "trainer:1",
        "gpu": 0.5,
        "env": env(),
        "checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}},
    },
    "template": {"gpu": 0.5, "template": {"spec": pod()}},
    "roles": {
        "roles": [
            {"name": "a", "gpu": 1, "image": "trainer:1", "env": env()},
            {"name": "b", "gpu": 1, "template": {"spec": pod()}},
        ]
    },
}


def built(folder: Path, *, configured: bool) -> dict[str, dict[str, Any]]:
    """What Kustomize makes of GPUJobs with another image, and a prefix for all names."""
    jobs = [
        {"apiVersion": "gpu-scheduler.io/v1alpha1", "kind": "GPUJob", "spec": spec}
        | {"metadata": {"name": name}}
        for name, spec in SPECS.items()
    ]
    others = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        for kind, name in OBJECTS.items()
    ]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([*jobs, *others]))
    (folder / "gpujobs.yaml").write_text(SHIPPED.read_text())
    kustomization = {
        "resources": ["objects.yaml"],
        "namePrefix": "test-",
        "images": [{"name": "trainer", "newTag": "2"}],
    } | ({"configurations": ["gpujobs.yaml"]} if configured else {})
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    kubectl = build.binary("kubectl")
    answer = subprocess.run(
        [kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    found = [each for each in yaml.safe_load_all(answer.stdout) if each["kind"] == "GPUJob"]
    return {each["metadata"]["name"]: each["spec"] for each in found}


def renamed(value: Any) -> Any:
    """A part of a spec as it should become."""
    if isinstance(value, dict):
        return {key: renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each) for each in value]
    if value in OBJECTS.values():
        return f"test-{value}"
    return "trainer:2" if value == "trainer:1" else value


def test_every_place_is_rewritten(tmp_path: Path) -> None:
    assert built(tmp_path, configured=True) == {
        f"test-{name}": renamed(spec) for name, spec in SPECS.items()
    }


def test_without_the_configuration_they_are_not(tmp_path: Path) -> None:
    """Else the configuration would have become needless."""
    found = built(tmp_path, configured=False)
    assert found["test-short"]["image"] == "trainer:1"
    assert found["test-template"]["template"]["spec"]["serviceAccountName"] == "runner"


def paths() -> list[str]:
    said = yaml.safe_load(SHIPPED.read_text())
    named = [each["fieldSpecs"] for each in said["nameReference"]]
    return [each["path"] for fields in (said["images"], *named) for each in fields]


@pytest.mark.parametrize("path", paths())
def test_a_path_is_one_of_the_crd(path: str) -> None:
    """As far as it says what is in a template."""
    versions = KINDS[0].definition()["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]
    for part in path.replace("[]", "").split("/"):
        schema = schema.get("items", schema)
        if "properties" not in schema:
            assert schema.get("x-kubernetes-preserve-unknown-fields"), path
            return
        assert part in schema["properties"], path
        schema = schema["properties"][part]
