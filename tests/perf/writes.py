"""Writes that the API server has answered, from its metric apiserver_request_total.

The metric does not name the client, so writes are told apart by verb, resource and subresource.
Left out is what has nothing to do with placing pods: nodes and leases (heartbeats) and pods/status
(the fake kubelets; nobody else writes it in these runs, as the audit log shows). Refused writes
and dry runs count. Called before and after each throughput run.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping

from gpu_scheduler.kube.client import Client

VERBS = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})
LEFT_OUT = frozenset({"nodes", "nodes/status", "leases", "pods/status"})
# Authentication and authorization reviews store nothing.
_REVIEWS = frozenset({"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})

_LINE = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Writes = Counter[str]
"""Writes by "VERB resource/subresource"."""


def parse(metrics: str, *, stored: bool = False) -> Writes:
    """All writes in the text of /metrics; ``stored``: those that changed an object alone."""
    found: Writes = Counter()
    for line in _LINE.finditer(metrics):
        labels = dict(_LABEL.findall(line["labels"]))
        verb, resource = labels.get("verb", ""), labels.get("resource", "")
        if verb not in VERBS or not resource or resource in _REVIEWS:
            continue
        if stored and (labels.get("dry_run") or not labels.get("code", "").startswith("2")):
            continue
        subresource = labels.get("subresource", "")
        name = f"{resource}/{subresource}" if subresource else resource
        found[f"{verb} {name}"] += int(float(line["value"]))
    return found


def counted(writes: Mapping[str, int]) -> Writes:
    """Those that belong to placing pods."""
    return Counter(
        {key: n for key, n in writes.items() if key.split()[1] not in LEFT_OUT and n > 0}
    )


def by_kind(writes: Mapping[str, int]) -> dict[str, int]:
    """Counted writes in three sums: pods and their binding, events, everything else."""
    found = {"pods": 0, "events": 0, "jobs_and_projects": 0}
    for key, n in writes.items():
        resource = key.split()[1].partition("/")[0]
        found[resource if resource in found else "jobs_and_projects"] += n
    return found


async def read(client: Client, *, stored: bool = False) -> Writes:
    """What the API server has counted until now."""
    text = (await client.request("GET", "/metrics", accept="text/plain")).decode()
    return parse(text, stored=stored)


async def settled(client: Client, *, pause_seconds: float = 0.5, tries: int = 20) -> Writes:
    """The same once it stands still: events and status follow a little later."""
    before = await read(client)
    for _ in range(tries):
        await asyncio.sleep(pause_seconds)
        after = await read(client)
        if counted(after) == counted(before):
            return after
        before = after
    return before
