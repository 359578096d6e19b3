"""A leader that is killed between a place and its pod, on a real control plane.

Each time the proxy holds the write that makes or widens a Job, the leader gets SIGKILL exactly
there, and a stand-by goes on. The write never arrives, or arrives once another leads, or has
arrived and nobody heard the answer. ``KILLS`` says how often.
"""

import os

from tests.api import account
from tests.api.conftest import administrator
from tests.api.pod_watch import Pods, PodWatch
from tests.api.replica import STANDBY, Replica
from tests.api.tenant import Json, Tenant, runs, template, until
from tests.faultproxy import Fault, FaultProxy, Rule
from tests.job_kinds import JOB_KINDS
from tests.trial_values import TrialValues, see

from cluster import Running
from gpu_scheduler.core.model.units import DEVICE_MILLI

MOMENTS = ("never arrives", "arrives late", "is not answered")
KILLS = int(os.environ.get("KILLS", len(JOB_KINDS) * len(MOMENTS)))
AT_ONCE = 6  # jobs under way
JOBS = r"^/apis/batch/v1/namespaces/[^/]+/jobs(/[^/]+)?$"


class Leaders:
    """One that leads and one that stands by, behind the proxy."""

    def __init__(self, running: Running, proxy: FaultProxy) -> None:
        self._running, self._count = running, 0
        self._way = proxy.kubeconfig(account.kubeconfig(running), running.folder / "proxied")
        self.leader = self._start()
        self.leader.wait_leading()
        self._standby = self._start()

    def kill(self) -> None:
        """The leader; the stand-by need not wait for the end of its Lease."""
        self.leader.kill()
        self.leader.forget()

    def follow(self) -> None:
        """Until the stand-by leads; another one stands by then."""
        self._standby.wait_leading()
        self.leader, self._standby = self._standby, self._start()

    def end(self) -> None:
        for each in (self.leader, self._standby):
            if each.alive():
                each.kill()
        self.leader.forget()

    def _start(self) -> Replica:
        self._count += 1
        name = f"replica-{self._count}"
        return Replica(self._running, name, STANDBY, kubeconfig=self._way).start()


def test_a_leader_killed_between_a_place_and_its_pod_loses_nothing(
    control_plane: Running,
) -> None:
    tenant = Tenant(administrator(control_plane)).create(quota=8)
    jobs: dict[str, Json] = {}
    values: TrialValues = {}

    def look(pods: Pods) -> None:
        see(pods.values(), values)

    with (
        FaultProxy.of(control_plane) as proxy,
        PodWatch(control_plane, tenant.name, check=look) as watch,
    ):
        leaders = Leaders(control_plane, proxy)
        try:
            for number in range(KILLS):
                kind = JOB_KINDS[number % len(JOB_KINDS)]
                held = hold(proxy, moment := MOMENTS[number // len(JOB_KINDS) % len(MOMENTS)])
                jobs[f"job-{number}"] = kind
                submit(tenant, f"job-{number}", kind)
                strike(leaders, proxy, held, late=moment == "arrives late")
                until(lambda: end(tenant, jobs) < AT_ONCE, lambda: f"{list(jobs)} end")
            until(lambda: end(tenant, jobs) == 0, lambda: f"{list(jobs)} end")
            tenant.delete()
        finally:
            leaders.end()
    assert max(watch.peak.milli.values()) <= DEVICE_MILLI
    assert len(values) >= 6 * (KILLS // len(JOB_KINDS))


def hold(proxy: FaultProxy, moment: str) -> Rule:
    """Hold the next write that makes or widens a Job; said before there is a job to be made."""
    fault = Fault.DELAY_ANSWER if moment == "is not answered" else Fault.DELAY_REQUEST
    held = Rule(fault, "POST|PATCH", JOBS, seconds=None, times=1)
    proxy.rules[:] = [held]
    return held


def strike(leaders: Leaders, proxy: FaultProxy, held: Rule, *, late: bool) -> None:
    """Kill the leader at the write that is held, and have another one lead."""
    proxy.wait_for(lambda: held.held == 1)
    leaders.kill()
    proxy.rules.clear()
    leaders.follow()
    if late:
        proxy.release(held)
        proxy.wait_for(lambda: bool(held.answers))


def submit(tenant: Tenant, name: str, kind: Json) -> None:
    """A job of a kind whose pods run for a second or two."""
    spec = {**kind, "retries": 0}
    if "roles" in kind:
        spec["roles"] = [{**role, "template": template(runs(2))} for role in kind["roles"]]
    else:
        spec["template"] = template(runs(2))
    tenant.submit(name, **spec)


def end(tenant: Tenant, jobs: dict[str, Json]) -> int:
    """Remove the jobs that have ended as they should; how many have not ended yet."""
    for name in tuple(jobs):
        status = tenant.status(name)
        assert status.get("phase") != "Failed", (name, status)
        if status.get("phase") == "Succeeded":
            kind = jobs.pop(name)
            roles = sum(role.get("replicas", 1) for role in kind.get("roles", ()))
            due = roles or kind.get("completions", kind.get("parallelism", 1))
            pods = status["pods"]
            assert (pods["succeeded"], pods["failed"]) == (due, 0), (name, status)
            tenant.remove(name)
    return len(jobs)
