"""Advice that is followed on the real node, in real time: ``make advice-applied``, 40 minutes.

A size is advised when half an hour was seen, so no landing waits for it. With ``AFTER=1`` it goes
on until the new job has been seen for as long, which is as long once more.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from tests.api import tenant as waiting
from tests.api.caller import Caller
from tests.e2e.cuda_jobs import DRIVER, WATCHER, printed, python
from tests.e2e.gpu_jobs import USABLE_MIB, Json, wait_running
from tests.e2e.test_usage import gpu, shown, workloads
from tests.e2e.waits import NodeTenant, until

from cluster import Running
from demo import install
from gpu_scheduler.usage.advice.rules import DEFAULTS
from gpu_scheduler.usage.window import WARM_UP_SECONDS, WINDOW_SECONDS

SHARE, NEIGHBOUR, BUSY = 0.5, 0.7, 10
HELD_MIB, PEAK_MIB = 1000, 9000
# Two windows: with one, rules that matter more would come after this one.
SEEN_SECONDS = max(DEFAULTS.size_seconds, WARM_UP_SECONDS + 2 * WINDOW_SECONDS)
PATIENCE_SECONDS = SEEN_SECONDS + 900.0

# Holds little; for two seconds once, after three minutes, much more. Ends badly when refused.
PEAKS_ONCE = (
    DRIVER
    + f"""
def must(mib):
    code, pointer = allocate(mib)
    say(code=code, mib=mib)
    if code:
        sys.exit(1)
    return pointer
start()
must({HELD_MIB})
time.sleep(180)
pointer = must({PEAK_MIB - HELD_MIB})
time.sleep(2)
check("cuMemFree_v2", pointer)
say(peaked={PEAK_MIB})
while True:
    check("cuMemFree_v2", must(256))
    time.sleep(30)
"""
)

# Holds nine tenths of what it may, and takes and gives back a bit more. Ends badly when refused.
FILLS = (
    DRIVER
    + """
start()
code, _ = allocate(totals()["totalMiB"] * 9 // 10)
say(code=code, rounds=0)
rounds = 0
while not code:
    code, pointer = allocate(64)
    rounds += 1
    if code or rounds % 100 == 0:
        say(code=code, rounds=rounds)
    if not code:
        check("cuMemFree_v2", pointer)
    time.sleep(0.1)
sys.exit(1)
"""
)


@pytest.fixture
def tenant(admin: Caller) -> Iterator[NodeTenant]:
    """Quota is not what anybody here waits for."""
    made = NodeTenant(admin)
    made.create(quota=3)
    yield made
    made.delete()


def test_a_job_changed_as_advised_makes_room_and_is_not_advised_again(
    operated: Running, tenant: NodeTenant
) -> None:
    made = python(PEAKS_ONCE)
    made["spec"]["containers"][0]["env"] = [{"name": "FAKEGPU_BUSY", "value": str(BUSY)}]
    tenant.submit("wasteful", gpu=SHARE, template=made)
    first = wait_running(tenant, "wasteful")
    long_until(
        lambda: any("peaked" in line for line in printed(operated, first)), "it had its peak"
    )
    say(f"it held {PEAK_MIB} MiB for 2 s, and holds {HELD_MIB} MiB")
    long_until(lambda: "OVERSIZED" in rules(tenant, "wasteful"), lambda: told(tenant))
    peak = shown(tenant, "wasteful")["memoryMiB"]["peak"]
    assert peak >= PEAK_MIB, "its peak is known"
    advice = gpu(operated, tenant, "advise", "wasteful")
    say(advice)
    assert f"instead of {SHARE}" in " ".join(advice.split()), "the share that was asked for"

    tenant.submit("elsewhere", gpu=1, template=python(WATCHER))  # the other GPU
    wait_running(tenant, "elsewhere")
    tenant.submit("neighbour", gpu=NEIGHBOUR, template=python(FILLS))
    until(lambda: waits(tenant), "the neighbour waits for room")
    say(f"the neighbour waits: {tenant.status('neighbour')['message']}")

    command = command_of(operated, tenant, "wasteful")
    say(f"$ {command}")
    say(run(operated, tenant, command.replace("wasteful-2", "trimmed", 1)))
    advised = tenant.job("trimmed")["spec"]["gpu"]
    assert advised < SHARE
    assert advised * USABLE_MIB >= PEAK_MIB, "it is not advised below its peak"
    assert advised + NEIGHBOUR <= 1, "the neighbour fits beside it"
    tenant.remove("wasteful")
    new, neighbour = wait_running(tenant, "trimmed"), wait_running(tenant, "neighbour")
    one, other = (tenant.allocations(name)[0].devices[0] for name in ("trimmed", "neighbour"))
    assert one.device == other.device
    say(f"trimmed has {advised} of {one.device}, the neighbour {NEIGHBOUR}")
    tenant.remove("elsewhere")

    long_until(lambda: any("peaked" in line for line in printed(operated, new)), "it peaks again")
    until(lambda: len(printed(operated, neighbour)) > 2, "the neighbour fills its share")
    if os.environ.get("AFTER") == "1":
        say("and once more as long")

        def seen() -> bool:
            assert "OVERSIZED" not in rules(tenant, "trimmed"), told(tenant)
            return seconds_seen(tenant, "trimmed") > SEEN_SECONDS + 120

        long_until(seen, lambda: told(tenant))
        say(gpu(operated, tenant, "advise", "trimmed"))
    for name, pod in (("trimmed", new), ("neighbour", neighbour)):
        lines = printed(operated, pod)
        assert {line["code"] for line in lines if "code" in line} == {0}, (name, lines)
        now = wait_running(tenant, name)
        assert now["metadata"]["uid"] == pod["metadata"]["uid"], f"{name} is the same pod still"
        assert now["status"]["containerStatuses"][0]["restartCount"] == 0
    long_until(
        lambda: shown(tenant, "trimmed")["memoryMiB"]["peak"] >= PEAK_MIB,
        lambda: f"its peak is shown with the next minute: {told(tenant)}",
    )


def waits(tenant: NodeTenant) -> bool:
    return tenant.status("neighbour")["reason"] in ("WaitingForGPU", "Fragmented")


def rules(tenant: NodeTenant, name: str) -> list[str]:
    """That are found of a workload."""
    return [each["rule"] for each in shown(tenant, name).get("advice", ())]


def seconds_seen(tenant: NodeTenant, name: str) -> float:
    """For how long a workload has held its GPUs, by the object that shows it."""
    path = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{tenant.name}/gpuusages/current"
    at = datetime.fromisoformat(tenant.admin.get(path).body["status"]["observedAt"])
    return (at - datetime.fromisoformat(shown(tenant, name)["startedAt"])).total_seconds()


def told(tenant: NodeTenant) -> str:
    return json.dumps(workloads(tenant))


def command_of(cluster: Running, tenant: NodeTenant, name: str) -> str:
    """The line that does what OVERSIZED says."""
    answer = json.loads(gpu(cluster, tenant, "advise", name, "-o", "json"))
    (work,) = answer["advised"]
    (found,) = [each for each in work["advice"] if each["rule"] == "OVERSIZED"]
    command: str = found["command"]
    return command


def run(cluster: Running, tenant: NodeTenant, line: str) -> str:
    """A line that was pasted into a shell, with the namespace behind it."""
    install.command(cluster)
    path = os.pathsep.join((str(cluster.folder / "bin"), os.environ["PATH"]))
    ran = subprocess.run(
        f"{line} -n {shlex.quote(tenant.name)}",
        shell=True,
        env={**os.environ, **cluster.environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr


def long_until(condition: Callable[[], bool], what: str | Callable[[], str]) -> None:
    """As ``until``, for what takes half an hour: it looks seldom."""

    def look() -> bool:
        time.sleep(5)
        return condition()

    waiting.until(look, what, PATIENCE_SECONDS)


def say(text: Json | str) -> None:
    sys.stdout.write(f"{datetime.now():%H:%M:%S} {text}\n")
    sys.stdout.flush()
