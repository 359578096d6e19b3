"""Pods for tests on the real node: a builder, and waiting for what a pod comes to."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.e2e.waits import TIMEOUT

from cluster import Running, images

DEVICES_ANNOTATION = "gpu-scheduler.io/c0-devices"


@dataclass(frozen=True)
class PodBuilder:
    """A pod of one container of the quickstart image, on whichever node."""

    name: str
    command: tuple[str, ...] = ("/bin/quickstart",)
    annotations: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, Any], ...] = ()
    runtime_class: str | None = None

    def shell(self, script: str) -> "PodBuilder":
        return replace(self, command=("/bin/sh", "-c", script))

    def variable(self, name: str, value: str) -> "PodBuilder":
        return replace(self, env=(*self.env, (name, {"value": value})))

    def devices(self, value: str) -> "PodBuilder":
        """NVIDIA_VISIBLE_DEVICES from an annotation, as the operator's pods have it."""
        source = {"fieldRef": {"fieldPath": f"metadata.annotations['{DEVICES_ANNOTATION}']"}}
        return replace(
            self,
            annotations=(*self.annotations, (DEVICES_ANNOTATION, value)),
            env=(*self.env, ("NVIDIA_VISIBLE_DEVICES", {"valueFrom": source})),
            runtime_class="nvidia",
        )

    def obj(self) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": images.QUICKSTART,
                    "imagePullPolicy": "Never",
                    "command": list(self.command),
                    "env": [{"name": name, **value} for name, value in self.env],
                }
            ],
        }
        if self.runtime_class is not None:
            spec["runtimeClassName"] = self.runtime_class
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "annotations": dict(self.annotations)},
            "spec": spec,
        }


def make_pod(prefix: str = "pod") -> PodBuilder:
    return PodBuilder(f"{prefix}-{uuid.uuid4().hex[:8]}")


@contextmanager
def created(cluster: Running, pod: PodBuilder | dict[str, Any]) -> Iterator[str]:
    """The pod's name while it exists."""
    manifest = pod if isinstance(pod, dict) else pod.obj()
    name: str = manifest["metadata"]["name"]
    cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))
    try:
        yield name
    finally:
        cluster.kubectl("delete", "pod", name, "--force", "--wait=false")


@contextmanager
def started(cluster: Running, pods: Mapping[str, PodBuilder]) -> Iterator[dict[str, str]]:
    """The names of several pods while they exist; all are made at once."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod.obj() for pod in pods.values()]}
    names = {key: pod.name for key, pod in pods.items()}
    cluster.kubectl("create", "-f", "-", input=json.dumps(listed))
    try:
        yield names
    finally:
        cluster.kubectl("delete", "pod", *names.values(), "--force", "--wait=false")


def wait_for_phase(cluster: Running, name: str, phase: str) -> None:
    cluster.kubectl(
        "wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}",
        TIMEOUT,
    )  # fmt: skip


def output_of(cluster: Running, pod: PodBuilder) -> str:
    """Run the pod to its good end and return what it printed."""
    with created(cluster, pod) as name:
        return output(cluster, name)


def output(cluster: Running, name: str) -> str:
    """What a pod has printed, once it has come to its good end."""
    wait_for_phase(cluster, name, "Succeeded")
    return cluster.kubectl("logs", name).stdout


def variables(text: str) -> Mapping[str, str]:
    """What ``env`` printed."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
