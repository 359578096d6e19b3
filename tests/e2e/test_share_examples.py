"""The examples of pods that ask by themselves, in real containers, as they stand there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.tenant import Json, Tenant, held
from tests.e2e.cuda_jobs import PYTHON
from tests.e2e.share_workloads import cap_mib, devices, team
from tests.e2e.waits import TIMEOUT, until

from cluster import Running
from demo import install
from gpu_scheduler.api.names import COMPAT

EXAMPLES = Path(__file__).parents[2] / "examples" / "any-pod"
# What each makes: how many pods, and MiB of device memory in each.
MADE = {
    "server": (2, cap_mib(250)),
    "notebook": (1, 8192),
    "gang": (2, cap_mib(500)),
    "nightly": (1, cap_mib(500)),
    "hami": (2, 3000),
    "kai": (1, cap_mib(500)),
}


@pytest.fixture
def owner(operated: Running) -> Iterator[Tenant]:
    with team(operated, quota=2) as made:
        yield made


def applied(operated: Running, owner: Tenant, name: str) -> None:
    """Apply an example in the tenant's namespace, which opts in where its own one does."""
    documents: list[Json] = list(yaml.safe_load_all((EXAMPLES / f"{name}.yml").read_text()))
    for each in documents:
        if each["kind"] == "Namespace":
            labels = {COMPAT: each["metadata"]["labels"][COMPAT]}
            path = f"/api/v1/namespaces/{owner.name}"
            assert owner.admin.patch(path, {"metadata": {"labels": labels}}).ok
        elif name == "server" and each["kind"] == "Deployment":
            container = each["spec"]["template"]["spec"]["containers"][0]
            container["image"] = (
                f"docker.io/{install.REPOSITORY}:{install.TAG}"  # the node has no other with Python
            )
            container["command"][0] = PYTHON
    kept = [each for each in documents if each["kind"] != "Namespace"]
    for each in kept:
        each["metadata"]["namespace"] = owner.name
        if each["kind"] == "CronJob":
            each["spec"]["suspend"] = True  # its turn comes now alone, and not by the clock, too
    operated.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(kept))
    if name == "nightly":
        made = ("create", "job", "now", "--from=cronjob/nightly", "-n", owner.name)
        operated.kubectl(*made)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.yml")))
def test_an_example_runs_with_what_it_asks_for(operated: Running, owner: Tenant, name: str) -> None:
    applied(operated, owner, name)
    count, mib = MADE[name]

    def all_run() -> Any:
        found = [pod for pod in owner.pods() if pod["status"].get("phase") == "Running"]
        return len(found) == count and found

    pods = until(all_run, lambda: json.dumps([p["status"] for p in owner.pods()]))
    for pod in pods:
        assert {allocated.mib for allocated in devices(pod)} == {mib}
    total = sum(allocated.milli for pod in pods for allocated in devices(pod)) / 1000
    until(lambda: held(owner) == total, lambda: f"{total} is charged, not {held(owner)}")
    if name == "server":
        answers(operated, owner, pods[0])


def answers(operated: Running, owner: Tenant, pod: Json) -> None:
    """It is ready, and its model answers, on the CPU."""
    name = pod["metadata"]["name"]
    operated.kubectl("wait", "-n", owner.name, "--for=condition=Ready", f"pod/{name}", TIMEOUT)
    script = (
        "import urllib.request as u; "
        "print(u.urlopen('http://127.0.0.1:8000/').read().decode()); "
        "print(u.urlopen('http://127.0.0.1:8000/', b'[[2, 1, 1]]').read().decode())"
    )
    done = operated.kubectl("exec", "-n", owner.name, name, "--", PYTHON, "-c", script)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first, second) == ({"device": "cpu"}, {"scores": [2.0]})
