"""Flags of ``runai submit`` that a GPUJob has nothing for: each says what to do instead.

They are hidden options of ``submit``, so that a command line that was moved here is told what is
missing and is not misunderstood. Those that mean something here are options of ``submit`` itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from gpu_scheduler.cli.ending import end

F = TypeVar("F", bound=Callable[..., Any])

_TEMPLATE = "write it in spec.template of a file and pass that: -f FILE"
_FORWARD = "reach a port of the job's pod with: kubectl gpu port-forward JOB PORT"
_SERVE = 'jobs here end; for a server label a Deployment\'s pods gpu-scheduler.io/gpu: "0.5"'
_NODES = (
    "for a GPU model write --gpu-models A100; for a label of nodes spec.template.spec.nodeSelector "
    "of a file (-f)"
)
_NAMES = "names are not made up here; write NAME"

SAME: Mapping[str, str] = {
    "--gpu-portion-request": "--gpu",
    "--gpu-memory-request": "--gpu-memory",
    "--backoff-limit": "--retries",
    "--backofflimit": "--retries",
    "--auto-deletion-time-after-completion": "--ttl-after-finish",
    "--existing-pvc": "--pvc",
    "--environment": "--env",
    "--environment-variable": "--env",
    "--cpu-core-request": "--cpu",
    "--cpu-memory-request": "--memory",
    "--cpu-core-limit": "--cpu-limit",
    "--cpu-memory-limit": "--memory-limit",
}
"""What options of ``submit`` are called there."""

VALUED: Mapping[str, str] = {
    "--address": _FORWARD,
    "--port": _FORWARD,
    "--service-type": _FORWARD,
    "--external-url": _FORWARD,
    "--node-type": _NODES,
    "--node-pool": _NODES,
    "--node-pools": _NODES,
    "--toleration": _TEMPLATE,
    "--capability": _TEMPLATE,
    "--extended-resource": _TEMPLATE,
    "--env-secret": f"a variable out of a Secret is valueFrom.secretKeyRef; {_TEMPLATE}",
    "--env-pod-field-ref": f"a variable out of the pod is valueFrom.fieldRef; {_TEMPLATE}",
    "--supplemental-groups": _TEMPLATE,
    "--seccomp-profile": _TEMPLATE,
    "--configmap-map-volume": _TEMPLATE,
    "--secret-volume": _TEMPLATE,
    "--host-path": "write -v /FOLDER/OF/THE/NODE:/HERE",
    "--nfs": "write -v /FOLDER:/HERE:rw:SERVER",
    "--new-pvc": "make the claim first (kubectl apply), then write --pvc CLAIM:/HERE",
    "--git-sync": f"an init container can clone; {_TEMPLATE}",
    "--s3": f"an init container can copy; {_TEMPLATE}",
    "--mig-profile": "write the share: --gpu 0.5, or --gpu-memory 10Gi",
    "--template": "a file takes its place: -f FILE, and flags beat it",
    "--job-name-prefix": _NAMES,
    "--name-prefix": _NAMES,
    "--gpu-portion-limit": "what is asked is the cap: --gpu 0.5",
    "--gpu-memory-limit": "what is asked is the cap: --gpu-memory 8Gi",
    "--pod-running-timeout": "a pod that has its GPU and does not start gives it back after "
    "startTimeoutSeconds of its GPUProject",
    "--termination-grace-period": _TEMPLATE,
    "--workers": "pods that start together are roles of a file (-f), or gang: true",
    "--min-replicas": _SERVE,
    "--max-replicas": _SERVE,
    "--serving-port": _SERVE,
}
PLAIN: Mapping[str, str] = {
    "--inference": _SERVE,
    "--jupyter": "write --interactive, the image, and what it runs behind --: "
    "--command -- jupyter lab --ip=0.0.0.0",
    "--stdin": "nobody sits at a job; for a shell: kubectl gpu bash JOB",
    "--tty": "nobody sits at a job; for a shell: kubectl gpu bash JOB",
    "--create-home-dir": "mount a volume at the home: -v SRC:/home/NAME",
    "--prevent-privilege-escalation": _TEMPLATE,
    "--allow-privilege-escalation": _TEMPLATE,
    "--auto-delete": "write --ttl-after-finish 5m",
}


def refused_options(command: F) -> F:
    """``VALUED`` and ``PLAIN`` as hidden options that end the command."""
    for name, instead in VALUED.items():
        command = _option(name, instead, is_flag=False)(command)
    for name, instead in PLAIN.items():
        command = _option(name, instead, is_flag=True)(command)
    return command


def _option(name: str, instead: str, *, is_flag: bool) -> Callable[[F], F]:
    def refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not context.resilient_parsing:
            end(f"{name}: {instead}", 2)

    return click.option(
        name,
        is_flag=is_flag,
        multiple=not is_flag,
        hidden=True,
        expose_value=False,
        callback=refuse,
    )
