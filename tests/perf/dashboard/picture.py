"""What a picture of the dashboard costs, and its pages: ``python -m tests.perf.dashboard.picture``.

No cluster: a leader's state is made up (``made_up``), changes each second, and is looked at once a
second as while a page is open. Prints JSON: milliseconds of CPU of a picture, in all and by its
longest turn of the event loop, and of each page of one picture for three readers. ``--profile``
prints where the time goes.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import time
from collections.abc import Sequence
from typing import Any

import uvloop
from tests.perf.dashboard.made_up import MadeUpCluster
from tests.perf.machine import machine
from tests.perf.signals.figures import milliseconds

from gpu_scheduler.dashboard.pages import PAGES
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.visible import ALL, Visible
from gpu_scheduler.web.dashboard.encoded import encoded

_WARM = 10  # pictures, until each agent has answered and each row was made once
_PAGES_OF = 5  # times that each page is made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.dashboard.picture")
    parser.add_argument("--nodes", type=int, default=125, help="of 8 GPUs")
    parser.add_argument("--containers", type=int, default=4000, help="each of a job of its own")
    parser.add_argument("--jobs", type=int, default=10_000, help="in all; the others wait")
    parser.add_argument("--namespaces", type=int, default=200, help="each a project")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--statuses", type=int, default=100, help="written in a second")
    parser.add_argument("--turns", type=int, default=2, help="jobs that end and come in a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args(arguments)
    cluster = MadeUpCluster(
        options.nodes, options.containers, options.jobs, options.namespaces, options.seed
    )
    gc.set_threshold(50_000, 20, 100)  # as ``main`` does
    gc.collect()
    gc.freeze()  # as the leader does once it knows the cluster
    found = uvloop.run(_measured(cluster, options))  # as the operator does
    print(json.dumps({"machine": machine(), "options": vars(options), **found}, indent=2))  # noqa: T201
    return 0


async def _measured(cluster: MadeUpCluster, options: argparse.Namespace) -> dict[str, Any]:
    def second() -> None:
        cluster.second(options.statuses, options.turns)

    began = time.process_time()
    picture = await cluster.maker.look()
    first = time.process_time() - began
    for _ in range(_WARM):
        second()
        picture = await cluster.maker.look()
    profile = cProfile.Profile() if options.profile else None
    took = []
    for _ in range(options.seconds):
        second()
        began = time.process_time()
        if profile is not None:
            profile.enable()
        picture = await cluster.maker.look()
        if profile is not None:
            profile.disable()
        took.append(time.process_time() - began)
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
    turns = []
    for _ in range(options.seconds):
        second()
        turns.append(await _longest_turn(cluster))
    return {
        "rows": {"works": len(picture.works), "queue": len(picture.queue)},
        "first": round(1000 * first, 1),
        "picture": milliseconds(took),
        "longestTurn": milliseconds(turns),
        "pages": _pages(cluster, picture),
    }


async def _longest_turn(cluster: MadeUpCluster) -> float:
    """CPU of the longest turn of the loop while a picture is made."""
    longest, looking = 0.0, asyncio.create_task(cluster.maker.look())
    while not looking.done():
        before = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - before)
    return longest


def _pages(cluster: MadeUpCluster, picture: Picture) -> dict[str, dict[str, float]]:
    """Milliseconds of each page for who sees all, ten namespaces and nodes, and ten namespaces."""
    job = cluster.one_that_runs()
    some = frozenset(f"team-{number}" for number in range(9)) | {job.namespace}
    readers = {
        "all": ALL,
        "tenNamespaces": Visible(some, inventory=True),
        "tenNamespacesAlone": Visible(some, inventory=False),
    }
    names = {"namespace": job.namespace, "kind": "GPUJob", "name": job.name}
    found: dict[str, dict[str, float]] = {}
    for page in PAGES:
        asked: dict[str, str] = {"span": "24h"} if page.path == "chart" else {}
        if "{" in page.path:
            asked = {"name": job.namespace} if page.path.startswith("projects") else names
        for reader, visible in readers.items():
            took, size = [], 0
            for _ in range(_PAGES_OF):
                began = time.thread_time()
                view = page.make(picture, visible, asked)
                size = 0 if view is None else len(encoded(view).body)
                took.append(time.thread_time() - began)
            found.setdefault(page.path, {})[reader] = round(1000 * min(took), 2)
            found[page.path][f"{reader}Bytes"] = size
    return found


if __name__ == "__main__":
    raise SystemExit(main())
