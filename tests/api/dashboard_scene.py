"""A small cluster on which every page of the dashboard has something to show, and that stays so.

Eight GPUs on four nodes, of which one is cordoned and one has an agent that says what GPUs do.
Three projects with what runs, waits for several reasons, is suspended, and has ended; a gang, a
search, a Deployment and a pod that ask by themselves; and strings of somebody who means harm
wherever they fit.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from msgspec.structs import replace
from tests.api.agent import NODE, Agent
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant, runs, template, until
from tests.api.test_shares import Web, make_pod
from tests.api.test_shares import template as share_template
from tests.api.trials import LOSS, end, wait_running
from tests.api.usage_agent import UsageAgent

from gpu_scheduler.usage.answer import DeviceHealth, DeviceNow, ProcessNow

EVIL = '"><img src=x onerror=window.hit=1><script>window.hit=1</script>'
CLOSED = "r7525-3"
IDLE_SECONDS = 3 * 3600
_ON_IT = {"kubernetes.io/hostname": NODE}
_SETTINGS = {"usage_seconds": "1", "cap_image": "example/operator:v1"}
_TRIALS: list[Json] = [{"lr": lr, "name": EVIL} for lr in (0.1, 0.01, 0.001, 0.0001)]
_SEARCH: Json = {"algorithm": "list", "objective": LOSS, "trials": _TRIALS}


def settings(agent_port: int) -> dict[str, str]:
    """The operator's, beside those of the stand."""
    return {**_SETTINGS, "agent_port": str(agent_port)}


@dataclass(frozen=True, slots=True)
class Scene:
    """The tenants: one with most of the work, one that borrows, one that means harm."""

    admin: Caller
    vision: Tenant
    speech: Tenant
    guests: Tenant


@contextmanager
def scene_on(admin: Caller, agent: UsageAgent) -> Iterator[Scene]:
    """It is whole when this begins, and goes when it ends; ``agent``: of the first node."""
    with ExitStack() as stack:

        def team(name: str, **project: object) -> Tenant:
            made = Tenant(admin, name).create(**project)
            stack.callback(made.delete)
            return made

        node = Agent(admin).start()
        stack.callback(node.stop)
        node.live()
        closed = f"/api/v1/nodes/{CLOSED}"
        assert admin.patch(closed, {"spec": {"unschedulable": True}}).ok
        stack.callback(admin.patch, closed, {"spec": {"unschedulable": None}})
        scene = Scene(
            admin,
            team("vision", quota=3.5, limit=5),
            team("speech", quota=1, limit=2),
            team("guests", quota=2),
        )
        _runs(scene, agent)
        _ends(scene)
        _waits(scene)
        yield scene


def _runs(scene: Scene, agent: UsageAgent) -> None:
    vision, speech, guests = scene.vision, scene.speech, scene.guests
    here = template(nodeSelector=_ON_IT)
    vision.submit("train", gpu=0.5, template=here)
    vision.wait_placed("train")
    vision.submit("notebook", gpu=0.5, type="interactive", template=here)
    vision.wait_placed("notebook")
    agent_says(agent, vision, "train", busy=0.7, seconds=1200)
    agent_says(agent, vision, "notebook", busy=0.0, seconds=IDLE_SECONDS)
    vision.submit("ddp", gang=True, parallelism=2, gpu=1)
    vision.wait_placed("ddp", 2)
    speech.submit("tts", gpu=1)
    speech.wait_placed("tts")
    speech.submit("asr", gpu=0.5)  # half of it is borrowed
    speech.wait_placed("asr")
    Web(speech, "api").create(2, "0.15")
    make_pod(speech, "shell", share_template("0.1", controlled=False))
    until(
        lambda: sum(p["status"].get("phase") == "Running" for p in speech.pods()) == 5,
        "what asks by itself runs",
    )
    search(vision, "search", 0.25)
    guests.submit("mischief", gpu=0.2, image=EVIL, args=[EVIL])
    guests.wait_placed("mischief")
    for tenant, job in ((vision, "ddp"), (speech, "tts"), (speech, "asr"), (guests, "mischief")):
        tenant.wait_phase(job, "Running")


def search(tenant: Tenant, name: str, gpu: float) -> None:
    """Two of its trials have ended, one of them well; two run."""
    tenant.submit(
        name, gpu=gpu, parallelism=2, completions=4, retries=0, sweep=_SEARCH, template=template()
    )
    pods = wait_running(tenant, name, 0, 1)
    end(tenant, pods[0], json.dumps({"loss": 0.25}))
    end(tenant, pods[1], EVIL, exit_code=3)
    wait_running(tenant, name, 2, 3)
    counts = {"running": 2, "succeeded": 1, "failed": 1}
    until(
        lambda: counts.items() <= tenant.status(name)["sweep"]["counts"].items(),
        lambda: f"{counts}: {tenant.status(name)}",
    )


def agent_says(agent: UsageAgent, tenant: Tenant, job: str, *, busy: float, seconds: int) -> None:
    """The one pod of a job has done so on its device for so long."""
    (pod,) = tenant.pods(job)
    (allocation,) = tenant.allocations(job)
    (allocated,) = allocation.devices
    agent.runs(pod, tenant.job(job)["metadata"]["uid"], busy=busy, seconds=seconds)
    uid = pod["metadata"]["uid"]
    agent.shares[uid] = replace(
        agent.shares[uid],
        device=allocated.device,
        cap_mib=allocated.mib,
        processes=(ProcessNow(pid=4000 + len(agent.shares), memory_mib=900.0, busy=busy),),
    )
    mine = [share for share in agent.shares.values() if share.device == allocated.device]
    agent.devices[allocated.device] = DeviceNow(
        uuid=allocated.device,
        busy=sum(share.busy or 0.0 for share in mine),
        memory_mib=500.0 + sum(share.memory_mib or 0.0 for share in mine),
        allocated=sum(share.share for share in mine),
        health=DeviceHealth(
            celsius=61.5,
            watts=241.0,
            slowed=("power-cap",),
            xids={31: 2},
            uncorrected_ecc=0,
            remapped_after_corrected=1,
            remapped_after_uncorrected=0,
            nvlink_mib_a_second=12.5,
        ),
    )


def _ends(scene: Scene) -> None:
    vision = scene.vision
    vision.submit("done", gpu=0.1, template=template(runs(0)))
    vision.wait_phase("done", "Succeeded")
    vision.submit("broken", gpu=0.1, retries=0, template=template(runs(0, exit_code="1")))
    vision.wait_phase("broken", "Failed")


def _waits(scene: Scene) -> None:
    vision, speech, guests = scene.vision, scene.speech, scene.guests
    vision.submit("paused", gpu=0.5, suspend=True)
    vision.wait_phase("paused", "Suspended")
    vision.submit("huge", gpu=4)
    vision.wait_reason("huge", "Unsatisfiable")
    speech.submit("later", gpu=1)
    speech.wait_reason("later", "WaitingForQuota")
    guests.submit("whole", gpu=2)
    until(lambda: guests.status("whole").get("reason"), "it waits")
    make_pod(guests, "visitor", share_template("2", controlled=False))
