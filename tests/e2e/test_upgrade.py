"""An upgrade from the version before, and the way back, while pods run and wait.

Runs before all other tests that need a release, and these have the upgraded one. Of the version
before there are the chart, and images made from its sources: tests/fixtures/upgrade.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.api.tenant import Json, Tenant, held
from tests.e2e import before
from tests.e2e.conftest import SETTINGS, install_chart
from tests.e2e.gpu_jobs import container, devices_there, environment, start, template
from tests.e2e.share_workloads import Workload, asking, cap_mib, described, devices, serve, team
from tests.e2e.waits import TIMEOUT, until

from cluster import Running
from demo.install import RELEASE
from gpu_scheduler.api.names import ALLOCATION

ROOT = Path(__file__).parents[2]
TRIALS = [{"lr": 0.5}, {"lr": 0.25}]
TRIAL = """
until [ -e /tmp/end ]; do sleep 0.2; done
echo "{\\"loss\\": $HPARAM_LR}" >"$GPUJOB_RESULT_FILE"
"""


@dataclass(frozen=True, slots=True)
class Work:
    """What runs and waits while the release changes.

    Attributes:
        owner: its project may use two GPUs.
        web: two pods that ask by themselves for a quarter of a GPU each, and run.
        before: all pods, of ``half`` (a GPUJob), ``search`` (the first of two trials) and ``web``.
            A GPUJob ``whole`` waits for two GPUs.
    """

    owner: Tenant
    web: Workload
    before: list[Json]

    def assert_unharmed(self, cluster: Running) -> None:
        """The same pods in the same containers, with what they held."""
        now = {pod["metadata"]["uid"]: pod for pod in self.owner.pods()}
        for pod in self.before:
            found = now.get(pod["metadata"]["uid"])
            assert found, f"{pod['metadata']['name']} is gone"
            assert "deletionTimestamp" not in found["metadata"]
            assert _containers(found) == _containers(pod)
            assert _allocation(found) == _allocation(pod)
            (allocated,) = devices(found)
            assert devices_there(cluster, found) == ({allocated.device}, {allocated.device})
            limit = environment(cluster, found)["GPU_MEMORY_LIMIT_MIB"]
            assert limit == str(cap_mib(allocated.milli))

    def assert_counted(self) -> None:
        """Who leads now knows what is held, and by whom, and says so of one that comes."""
        self.owner.submit("next", gpu=1, template=template(container()))
        message = self.owner.wait_reason("next", "WaitingForQuota")
        assert f"project {self.owner.name} holds 1.5 of its limit 2" in message
        self.owner.remove("next")
        until(lambda: held(self.owner) == 1.5, lambda: f"1.5 are held, not {held(self.owner)}")
        self.owner.wait_reason("whole", "WaitingForQuota")


def _containers(pod: Json) -> dict[str, tuple[str, int]]:
    """Id and restarts of each container."""
    status = pod["status"]
    found = (*status.get("initContainerStatuses", ()), *status["containerStatuses"])
    return {each["name"]: (each["containerID"], each["restartCount"]) for each in found}


def _allocation(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][ALLOCATION])


@pytest.fixture(scope="module")
def work(real_cluster: Running) -> Iterator[Work]:
    """Pods of the version before; at the end the release of this checkout is there."""
    found = real_cluster.helm("list", "-A", "-q").stdout.split()
    assert RELEASE not in found, "this runs before other tests: their release is there already"
    before.install_chart(real_cluster, SETTINGS)
    try:
        with team(real_cluster, quota=2, limit=2) as owner:
            start(owner, "half", gpu=0.5)
            web = serve(owner, "web", 2, asking("0.25", template(container())))
            web.wait_running(2)
            search = template(container(TRIAL))
            sweep = {"algorithm": "list", "objective": {"metric": "loss"}, "trials": TRIALS}
            start(owner, "search", gpu=0.5, parallelism=1, template=search, sweep=sweep)
            owner.submit("whole", gpu=2, template=template(container()))
            until(lambda: owner.status("whole").get("reason"), "whole has a verdict")
            yield Work(owner, web, owner.pods())
    finally:
        install_chart(real_cluster)


def served(cluster: Running, name: str) -> Json:
    """The schemas of a kind by version, as the API server has them."""
    crd = json.loads(cluster.kubectl("get", "crd", name, "-o", "json").stdout)
    return {each["name"]: fields(each["schema"]["openAPIV3Schema"]) for each in _versions(crd)}


def _versions(crd: Json) -> list[Json]:
    return list(crd["spec"]["versions"])


def fields(schema: Json, path: str = "") -> set[str]:
    """The paths of all fields."""
    found = {path}
    for name, more in schema.get("properties", {}).items():
        found |= fields(more, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found |= fields(schema[key], f"{path}[]")
    return found


def test_an_upgrade_harms_no_pod_and_knows_who_holds_what(
    real_cluster: Running, work: Work
) -> None:
    install_chart(real_cluster)
    work.assert_unharmed(real_cluster)
    work.assert_counted()
    for job in ("half", "search"):
        work.owner.wait_phase(job, "Running")
    for pod in work.web.running():
        assert "PodScheduled" in described(real_cluster, pod)


def test_kinds_have_the_fields_of_this_version(real_cluster: Running, work: Work) -> None:
    files = sorted((ROOT / "crds").glob("*.yaml"))
    assert files
    for file in files:
        crd = yaml.safe_load(file.read_text())
        wanted = {
            each["name"]: fields(each["schema"]["openAPIV3Schema"]) for each in _versions(crd)
        }
        assert served(real_cluster, crd["metadata"]["name"]) == wanted


def test_the_way_back_harms_nobody_either(real_cluster: Running, work: Work) -> None:
    real_cluster.helm("rollback", RELEASE, "-n", RELEASE, "--wait", TIMEOUT)
    work.assert_unharmed(real_cluster)
    work.assert_counted()
    (real_cluster.folder / "release").unlink()  # what was installed is not what is there
    install_chart(real_cluster)
    work.assert_unharmed(real_cluster)
    work.assert_counted()


def test_what_ran_ends_and_what_waited_starts(real_cluster: Running, work: Work) -> None:
    owner = work.owner
    seen: set[str] = set()

    def end() -> bool:
        for pod in owner.pods("search"):
            if pod["status"].get("phase") == "Running":
                seen.add(pod["metadata"]["uid"])
                where = ("exec", "-n", owner.name, pod["metadata"]["name"], "--")
                real_cluster.kubectl(*where, "touch", "/tmp/end", check=False)  # it may have ended
        return owner.status("search").get("phase") == "Succeeded"

    until(end, lambda: f"the search ends: {json.dumps(owner.status('search'))}")
    assert len(seen) == len(TRIALS), "none of them was run twice"
    status = owner.status("search")
    assert status["sweep"]["counts"]["succeeded"] == 2
    assert status["sweep"]["best"]["value"] == 0.25
    work.web.change(replicas=0)
    until(lambda: not work.web.pods(), "the Deployment gives back what it held")
    owner.remove("half")
    owner.wait_phase("whole", "Running")
    until(lambda: held(owner) == 2, "the project pays for it")
