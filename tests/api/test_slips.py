"""One slip of the hand anywhere in a GPUJob, on a real API server: said, or as a Deployment has it.

``make slips SLIPS=3000`` has more of them, and prints how long the words took.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Self

import pytest
import yaml
from tests.api.caller import Answer
from tests.api.conftest import CRDS
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team
from tests.api.slips import Slip, Slips, SlipType
from tests.api.tenant import GROUP, Json, Tenant, until

SLIPS = int(os.environ.get("SLIPS", "300"))
SEED = int(os.environ.get("SLIPS_SEED", "1"))
SETTINGS = CALM_LEASE
_AT_ONCE = 100
_MOST_CHANGES = 4  # made, is being checked, is invalid; and one that says so in other order
_REFUSED = (400, 403, 404, 413, 422)
_STRICT = "fieldValidation=Strict"

# What a GPUJob's template may not say although a Deployment's may, by a part of our words for it.
OURS_ALONE = {
    "is more than any node has": "an amount of CPU or memory that is a typing error",
    # What a pod may not have and its template may: the API server says so when the pod is made.
    "image.reference: Required": "a Deployment may be given the image later",
    "metadata.ownerReferences": "a controller drops those of a template",
    "metadata.finalizers": "a controller copies them as they are",
}


class Watched:
    """What a watch sees of the GPUJobs of a namespace."""

    def __init__(self, tenant: Tenant) -> None:
        self._admin, self._path = tenant.admin, f"{GROUP}/namespaces/{tenant.name}/gpujobs"
        self.judged: dict[str, tuple[float, Json]] = {}  # when, and the status
        self.changes: Counter[str] = Counter()
        self.held: set[str] = set()
        self._over = False
        self._thread = threading.Thread(target=self._watch)
        self._version = self._admin.get(self._path).body["metadata"]["resourceVersion"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the jobs, of which the watch hears."""
        self._over = True
        assert self._admin.send("DELETE", self._path).ok
        self._thread.join()
        until(lambda: not self._admin.get(self._path).body["items"], "the jobs are gone")

    def said(self, name: str) -> str:
        """The words of a status."""
        return str(self.judged[name][1].get("message", ""))

    def _watch(self) -> None:
        while not self._over:  # the API server ends those that are slow
            query = f"resourceVersion={self._version}&timeoutSeconds=5"
            for event in self._admin.watch(self._path, query):
                if self._over:
                    return
                self._version = event["object"]["metadata"]["resourceVersion"]
                self._see(event["object"])

    def _see(self, job: Json) -> None:
        name, status = job["metadata"]["name"], job.get("status", {})
        self.changes[name] += 1
        if status.get("placements") or "has its place" in status.get("message", ""):
            self.held.add(name)
        accepted = (c["status"] for c in status.get("conditions", ()) if c["type"] == "Accepted")
        waits = status.get("reason") == "VolumeNotMounted"  # for its claim, to be accepted then
        if next(accepted, None) or waits:
            first, _ = self.judged.get(name, (time.monotonic(), {}))
            self.judged[name] = first, status


@pytest.fixture
def slips(site: Site) -> Slips:
    openapi = site.admin.get("/openapi/v3/api/v1").body
    crd = next(path for path in CRDS if path.stem.endswith("gpujobs"))
    return Slips(openapi, yaml.safe_load(crd.read_text()), SEED)


def test_a_slip_is_said_or_is_what_a_deployment_may_have(
    site: Site, team: Team, slips: Slips
) -> None:
    tenant = team(quota=8)
    made = slips.make(SLIPS)
    before = Requests.of(site)
    found: list[str] = []
    took: list[float] = []
    for start in range(0, len(made), _AT_ONCE):
        found += _play(tenant, made[start : start + _AT_ONCE], took)
    after = Requests.of(site)
    asked = after.dry_runs - before.dry_runs
    took.sort()
    sys.stdout.write(
        f"{len(made)} slips on {len(slips)} paths; {asked} dry runs; words after "
        f"{took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (last)\n"
    )
    assert not found, "\n".join(found)
    assert asked <= len(made)
    assert after.refused_jobs == before.refused_jobs, site.replica.told()
    assert after.tried_jobs - before.tried_jobs <= len(made), "each once at most"
    assert "Traceback" not in site.replica.told()


def _play(tenant: Tenant, made: list[Slip], took: list[float]) -> list[str]:
    """What is wrong with the answers to some slips."""
    path = f"{GROUP}/namespaces/{tenant.name}/gpujobs?{_STRICT}"
    names, sent = [slip.name for slip in made], dict[str, float]()

    def apply(slip: Slip) -> Answer:
        answer = tenant.admin.create(path, _gpujob(slip))
        sent[slip.name] = time.monotonic()
        return answer

    with ThreadPoolExecutor(4) as pool, Watched(tenant) as watched:
        oracle = dict(zip(names, pool.map(partial(_deployed, tenant), made), strict=True))
        answers = dict(zip(names, pool.map(apply, made), strict=True))
        stored = {name for name, answer in answers.items() if answer.ok}
        until(
            lambda: stored <= watched.judged.keys(),
            lambda: f"all are judged but {sorted(stored - watched.judged.keys())}",
        )
    took += [watched.judged[name][0] - sent[name] for name in stored]
    return [
        f"{slip}: {why}; it said: {answers[slip.name].message or watched.said(slip.name)}"
        for slip in made
        for why in _wrong(slip, answers[slip.name], watched, oracle[slip.name])
    ]


def _wrong(slip: Slip, answer: Answer, watched: Watched, oracle: Answer | None) -> Iterator[str]:
    """What is wrong with the answer to a slip."""
    if not answer.ok:
        said, taken = answer.message, False
        if answer.status not in (400, 422):
            yield f"the API server answers {answer.status}"
    else:
        status = watched.judged[slip.name][1]
        said = status.get("message", "")
        taken = status.get("reason") != "Invalid"
        if not taken and not any(words in said for words in OURS_ALONE):
            if slip.name in watched.held:
                yield "held a place"
            if watched.changes[slip.name] > _MOST_CHANGES:
                yield f"its status was written {watched.changes[slip.name] - 1} times"
    exact = slip.kind in (SlipType.TYPE, SlipType.KEY)
    missing = slip.kind is SlipType.KEY and "Required value" in said  # the field that was meant
    if not taken and not missing and (slip.field if exact else "spec") not in said:
        yield f"the words do not name {slip.field}"
    if taken and oracle is None and exact:
        yield "is taken"
    if oracle is None or oracle.ok == taken:
        return
    if taken:
        yield f"is taken, and in a Deployment it is not: {oracle.message}"
    elif not any(words in said for words in OURS_ALONE):
        yield "is refused, and in a Deployment it is not"


def _gpujob(slip: Slip) -> Json:
    return {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": slip.name},
        "spec": slip.spec,
    }


def _deployed(tenant: Tenant, slip: Slip) -> Answer | None:
    """What the API server says to a Deployment of the template."""
    if slip.template is None:
        return None
    template = deepcopy(slip.template)
    meta = template.get("metadata")
    if isinstance(meta, dict | None):
        labels = (meta or {}).get("labels")
        if isinstance(labels, dict | None):
            template["metadata"] = {**(meta or {}), "labels": {**(labels or {}), "app": "slip"}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": slip.name},
        "spec": {"selector": {"matchLabels": {"app": "slip"}}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{tenant.name}/deployments?dryRun=All&{_STRICT}"
    return tenant.admin.create(path, body)


@dataclass(frozen=True, slots=True)
class Requests:
    """What the API server has counted since it began."""

    dry_runs: int  # of pod templates; nobody else asks for any
    refused_jobs: int  # Jobs that it would not make
    tried_jobs: (
        int  # that it was asked about without making them (``runtime.jobs.refused.lifting``)
    )

    @classmethod
    def of(cls, site: Site) -> Self:
        counted: Counter[str] = Counter()
        for line in site.running.kubectl("get", "--raw", "/metrics").stdout.splitlines():
            if line.startswith("apiserver_request_total{") and 'verb="POST"' in line:
                said, _, count = line.rpartition(" ")
                if 'resource="podtemplates"' in said and 'dry_run="All"' in said:
                    counted["tried"] += int(float(count))
                if 'resource="jobs"' in said and 'dry_run="All"' in said:
                    counted["tried jobs"] += int(float(count))
                elif 'resource="jobs"' in said and any(f'code="{c}"' in said for c in _REFUSED):
                    counted["refused"] += int(float(count))
        return cls(counted["tried"], counted["refused"], counted["tried jobs"])
