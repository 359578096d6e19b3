"""GPUJobs whose pods really run, and looks into their containers."""

import json
from pathlib import Path
from typing import Any

from tests.api.tenant import Tenant
from tests.e2e.pods import variables
from tests.e2e.waits import until

from cluster import Running, images, node_gpus

Json = dict[str, Any]

FIRST, SECOND = (gpu.uuid for gpu in node_gpus.GPUS)
USABLE_MIB = node_gpus.GPUS[0].usable_mib
HOLD = "quickstart 600"  # until it is told to stop
UNTIL_TOLD = "until [ -e /tmp/finish ]; do sleep 0.1; done"  # ends well then


def container(script: str = HOLD, name: str = "main", **more: Any) -> Json:
    """A container of the quickstart image that runs a shell script."""
    command = ["sh", "-c", f"exec {script}" if script == HOLD else script]
    return {"name": name, "image": images.QUICKSTART, "command": command, **more}


def template(*containers: Json, **pod: Any) -> Json:
    """A pod template; nothing in these containers is worth a long goodbye."""
    spec = {"containers": list(containers), "terminationGracePeriodSeconds": 2, **pod}
    return {"spec": spec}


def start(tenant: Tenant, name: str, **spec: Any) -> Json:
    """Submit a job of one pod that holds its GPUs, and wait until it runs; the pod."""
    tenant.submit(name, **{"template": template(container()), **spec})
    return wait_running(tenant, name)


def wait_running(tenant: Tenant, name: str) -> Json:
    """Until a pod of the job runs its containers and is to stay; the pod."""

    def running() -> Json | None:
        those = (p for p in tenant.pods(name) if p["status"].get("phase") == "Running")
        return next((p for p in those if not p["metadata"].get("deletionTimestamp")), None)

    def what() -> str:
        states = [p["status"] for p in tenant.pods(name)]
        return f"{name} runs; status {json.dumps(tenant.status(name))}, pods {json.dumps(states)}"

    pod: Json = until(running, what)
    return pod


def end_in_turn(
    cluster: Running, tenant: Tenant, job: str, *, at_once: int, container: str = "main"
) -> Json:
    """Let the pods of a job that run ``UNTIL_TOLD`` end, so many together; its last status."""
    seen: set[str] = set()
    while len(seen) < tenant.job(job)["spec"]["completions"]:
        pods: list[Json] = until(
            lambda: len(found := _running(tenant, job, seen)) == at_once and found,
            lambda: f"{at_once} more run at once; {json.dumps(tenant.status(job))}",
        )
        for pod in pods:
            let_end(cluster, pod, container=container)
            seen.add(pod["metadata"]["uid"])
    return tenant.wait_phase(job, "Succeeded")


def _running(tenant: Tenant, job: str, seen: set[str]) -> list[Json]:
    """Pods that run their containers, but those that were seen before."""
    return [
        pod
        for pod in tenant.pods(job)
        if pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] not in seen
    ]


def execute(
    cluster: Running, pod: Json, script: str, *, container: str = "main", check: bool = True
) -> str:
    """What a shell script in a running container prints."""
    meta = pod["metadata"]
    where = ("-n", meta["namespace"], meta["name"], "-c", container)
    return cluster.kubectl("exec", *where, "--", "sh", "-c", script, check=check).stdout


def let_end(cluster: Running, pod: Json, *, container: str = "main") -> None:
    """Tell a program that waits for ``/tmp/finish``; whoever tells it then waits for its end.

    With the container ends the shell that told it, too, and may have failed for that.
    """
    execute(cluster, pod, "touch /tmp/finish", container=container, check=False)


def environment(cluster: Running, pod: Json, *, container: str = "main") -> dict[str, str]:
    """The environment of a container's first process."""
    text = execute(cluster, pod, "tr '\\0' '\\n' </proc/1/environ", container=container)
    return dict(variables(text))


def devices_there(cluster: Running, pod: Json, *, container: str = "main") -> tuple[set[str], ...]:
    """UUIDs that the container runtime put in: by environment, and by files."""
    found = environment(cluster, pod, container=container)
    by_variable = {v for k, v in found.items() if k.startswith("FAKE_GPU_") and v.startswith("GPU")}
    files = execute(cluster, pod, "ls /dev/fakegpu 2>/dev/null || true", container=container)
    return by_variable, set(files.split())


def processes(marker: str) -> list[int]:
    """Processes of this machine, containers' too, with ``marker`` as an argument."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if marker.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue  # it has just ended
    return found
