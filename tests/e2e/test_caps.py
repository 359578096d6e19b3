"""Memory caps in real containers: what a program inside can take, and what it can see."""

import json
import math

from tests.api.tenant import GROUP, Json, Tenant
from tests.e2e.cuda_jobs import GREEDY, OUT_OF_MEMORY, PYTHON, WATCHER, printed, python
from tests.e2e.cuda_jobs import NEIGHBOUR as PATIENT
from tests.e2e.gpu_jobs import USABLE_MIB, let_end, wait_running
from tests.e2e.waits import until

from cluster import Running

HALF, THREE_TENTHS = math.floor(0.5 * USABLE_MIB), math.floor(0.3 * USABLE_MIB)
STEP_MIB = 256  # of the greedy program
OPERATOR = "system:serviceaccount:gpu-scheduler:gpu-scheduler"


def ended(owner: Tenant, job: str) -> Json:
    """The job's pod when its program has ended."""

    def found() -> Json | None:
        pods = (p for p in owner.pods(job) if p["status"].get("phase") in ("Succeeded", "Failed"))
        return next(pods, None)

    return until(found, lambda: f"{job} ends; {json.dumps(owner.status(job))}")


def test_a_greedy_job_runs_out_of_its_share_and_its_neighbour_does_not_notice(
    operated: Running, owner: Tenant
) -> None:
    owner.submit("neighbour", gpu=0.3, template=python(PATIENT))
    beside = wait_running(owner, "neighbour")
    until(lambda: printed(operated, beside), "it takes memory and gives it back")
    owner.submit("greedy", gpu=0.5, retries=0, template=python(GREEDY))
    greedy = ended(owner, "greedy")
    let_end(operated, beside)
    neighbour = ended(owner, "neighbour")
    devices = {g.device for j in ("greedy", "neighbour") for g in owner.allocations(j)[0].devices}
    assert len(devices) == 1
    before, after = printed(operated, greedy)
    assert before["totalMiB"] == HALF
    assert after["code"] == OUT_OF_MEMORY
    assert HALF - STEP_MIB - before["totalMiB"] + before["freeMiB"] <= after["gotMiB"] <= HALF
    assert after["freeMiB"] < STEP_MIB
    assert greedy["status"]["phase"] == "Failed"
    first, last = printed(operated, neighbour)
    assert (last["code"], neighbour["status"]["phase"]) == (0, "Succeeded")
    assert last["rounds"] > first["rounds"], "it went on beside the greedy one"


def test_a_shell_without_an_environment_keeps_the_cap(operated: Running, owner: Tenant) -> None:
    owner.submit("shell", gpu=0.3, template=python(WATCHER))
    pod = wait_running(owner, "shell")
    until(lambda: printed(operated, pod), "its program holds some memory")
    meta = pod["metadata"]
    where = ("exec", "-n", meta["namespace"], meta["name"], "-c", "main", "--")
    done = operated.kubectl(*where, "env", "-i", PYTHON, "-c", GREEDY, check=False)
    before, after = (json.loads(line) for line in done.stdout.splitlines())
    assert before["totalMiB"] == THREE_TENTHS
    assert after["code"] == OUT_OF_MEMORY
    # The two programs of the container share one cap.
    assert after["gotMiB"] <= THREE_TENTHS - 64
    owner.remove("shell")


def test_a_change_of_the_annotation_changes_the_cap_of_a_running_program(
    operated: Running, owner: Tenant
) -> None:
    owner.submit("resized", gpu=0.5, template=python(WATCHER))
    pod = wait_running(owner, "resized")
    until(lambda: printed(operated, pod), "the program tells its totals")
    assert printed(operated, pod)[-1]["totalMiB"] == HALF
    for mib in (4096, HALF):
        operated.kubectl(
            "annotate", "--overwrite", f"--as={OPERATOR}", "-n", owner.name, "pod",
            pod["metadata"]["name"], f"gpu-scheduler.io/c0-memory-mib={mib}",
        )  # fmt: skip
        until(
            lambda mib=mib: printed(operated, pod)[-1]["totalMiB"] == mib,
            lambda: f"the program sees the new cap; last {printed(operated, pod)[-1]}",
        )
    owner.remove("resized")


def test_status_names_the_layer_that_holds_the_cap(owner: Tenant) -> None:
    owner.submit("layered", gpu=0.3, template=python(WATCHER))
    wait_running(owner, "layered")

    def layer() -> object:
        placements = owner.status("layered").get("placements") or [{}]
        return placements[0].get("isolation")

    until(lambda: layer() == "interposer", lambda: f"the agent reports; {layer()}")
    status = owner.status("layered")
    (protected,) = [c for c in status["conditions"] if c["type"] == "Protected"]
    assert (protected["status"], protected["reason"]) == ("True", "Interposer")
    owner.remove("layered")


def test_later_containers_are_told_what_a_context_takes(operated: Running, owner: Tenant) -> None:
    """Measured by the agent on each of the two devices."""
    first = ("measured-0", "measured-1")
    for name in first:
        owner.submit(name, gpu=1, template=python(WATCHER))
    for name in first:
        wait_running(owner, name)

    def contexts_mib() -> list[int] | None:
        nodes = owner.admin.get(f"{GROUP}/gpunodes").body["items"]
        devices = [device for node in nodes for device in node["status"].get("devices", [])]
        return [d["contextMiB"] for d in devices if all("contextMiB" in each for each in devices)]

    measured = until(contexts_mib, "the agent measures a context on each device")
    for name in first:
        owner.remove(name)
    owner.submit("told", gpu=1, template=python(WATCHER))
    pod = wait_running(owner, "told")
    where = ("exec", "-n", owner.name, pod["metadata"]["name"], "-c", "main", "--")
    told = operated.kubectl(*where, "cat", "/etc/gpu-scheduler/context-mib").stdout
    assert int(told) in measured
    owner.remove("told")


def test_a_job_that_opts_out_is_told_its_cap_and_nothing_is_loaded(
    operated: Running, owner: Tenant
) -> None:
    owner.submit("cooperative", gpu=0.3, isolation="framework", template=python(WATCHER))
    pod = wait_running(owner, "cooperative")
    until(lambda: printed(operated, pod), "the program tells its totals")
    assert printed(operated, pod)[-1]["totalMiB"] == USABLE_MIB  # the whole device
    assert not pod["spec"].get("initContainers")
    owner.remove("cooperative")
