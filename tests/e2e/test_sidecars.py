"""GPUs of native sidecars in real containers, and ephemeral containers that help themselves."""

import json
import math

from tests.api.tenant import Json, Tenant
from tests.e2e.cuda_jobs import GREEDY, OUT_OF_MEMORY, PYTHON, WATCHER, python
from tests.e2e.gpu_jobs import USABLE_MIB, environment, wait_running
from tests.e2e.test_watchdog import condition, until_reported
from tests.e2e.waits import until

from cluster import Running
from gpu_scheduler.api.names import devices_annotation

QUARTER = math.floor(0.25 * USABLE_MIB)


def with_sidecar() -> Json:
    """A template whose sidecar holds some memory, and so does its container."""
    made = python(WATCHER)
    sidecar = {**made["spec"]["containers"][0], "name": "cache", "restartPolicy": "Always"}
    made["spec"]["initContainers"] = [sidecar]
    return made


def test_a_sidecar_sees_its_gpu_and_keeps_its_cap(operated: Running, owner: Tenant) -> None:
    asked = [{"name": "main", "gpu": 0.5}, {"name": "cache", "gpu": 0.25}]
    owner.submit("pair", template=with_sidecar(), containers=asked)
    pod = wait_running(owner, "pair")
    (held,) = owner.allocations("pair")
    inside = environment(operated, pod, container="cache")
    device = next(allocated.device for allocated in held.devices if allocated.container)
    assert inside["NVIDIA_VISIBLE_DEVICES"] == device
    assert inside["GPU_MEMORY_LIMIT_MIB"] == str(QUARTER)
    meta = pod["metadata"]
    where = ("exec", "-n", meta["namespace"], meta["name"], "-c", "cache", "--")
    done = operated.kubectl(*where, PYTHON, "-c", GREEDY, check=False)
    before, after = (json.loads(line) for line in done.stdout.splitlines())
    assert before["totalMiB"] == QUARTER and after["code"] == OUT_OF_MEMORY
    found = until_reported(owner, "pair", "Interposer")
    assert found["status"] == "True", "the agent knows both containers"


def test_kubectl_logs_shows_the_users_container(operated: Running, owner: Tenant) -> None:
    owner.submit("talks", gpu=0.25, template=python(WATCHER))
    meta = wait_running(owner, "talks")["metadata"]

    def said() -> bool:
        done = operated.kubectl("logs", "-n", meta["namespace"], meta["name"])
        return "totalMiB" in done.stdout and "Defaulted" not in done.stderr

    until(said, "its own words, and nobody else's")


def test_an_ephemeral_container_on_its_pods_gpu_is_named(owner: Tenant) -> None:
    owner.submit("train", gpu=0.25, template=python(WATCHER))
    pod = wait_running(owner, "train")
    meta, main = pod["metadata"], pod["spec"]["containers"][0]
    source = {"fieldPath": f"metadata.annotations['{devices_annotation(0)}']"}
    debugger = {
        "name": "debugger",
        "image": main["image"],
        "imagePullPolicy": "Never",
        "command": [PYTHON, "-c", WATCHER],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": source}}],
    }
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/ephemeralcontainers"
    added = owner.admin.patch(path, {"spec": {"ephemeralContainers": [debugger]}})
    assert added.ok, added.message
    # Until the agent has learnt which container is which, it may take one for the other.
    said = f"{meta['name']}: ephemeral container debugger: process "
    found = until(
        lambda: (
            (c := condition(owner, "train", "Protected")).get("message", "").startswith(said) and c
        ),
        lambda: f"it is named; {json.dumps(owner.status('train'))}",
    )
    assert (found["status"], found["reason"]) == ("False", "Unprotected")
    assert "where no cap holds it" in found["message"]
    # Here too: the first Event may come before that.
    owner.wait_event("train", "ForeignProcesses", words="ephemeral container debugger")
