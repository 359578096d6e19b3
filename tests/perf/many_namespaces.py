"""Jobs that come at once, all in one namespace or over many: when each was judged.

``python -m tests.perf.many_namespaces [JOBS NAMESPACES PROJECTS] [--rate WRITES] [--applied JOBS]
[--profile]`` plays the whole operator on the API server in memory of the generated histories, in
virtual time. That server takes so many writes a second, and a user applies so many jobs. Prints the
virtual seconds from the last apply until every job says why it waits, or runs, the writes of the
operator by kind, and its CPU seconds (with the server's). Needs no cluster.
"""

import argparse
import asyncio
import cProfile
import pstats
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import Server, place_of
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

NODES, GPUS = 4, 8
_LOOK_SECONDS, _MOST_SECONDS = 0.05, 600.0


class Busy(Server):
    """A server that takes one write after the other, so many a second."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._seconds, self._turn = 1 / rate, asyncio.Lock()
        self.writes: Counter[str] = Counter()

    async def request(self, method: str, path: str, *, params: Any = None, **more: Any) -> bytes:
        if method != "GET" and not (params or {}).get("dryRun"):
            self.writes[place_of(path).plural] += 1
            await self.takes_one()
        return await super().request(method, path, params=params, **more)

    async def takes_one(self) -> None:
        """A write, whoever sends it."""
        async with self._turn:
            await asyncio.sleep(self._seconds)


async def judged(
    jobs: int,
    namespaces: int,
    projects: int,
    options: argparse.Namespace,
    profile: cProfile.Profile | None,
) -> str:
    """What it took, in words."""
    stage = Stage(settings=SETTINGS.model_copy(update={"resync_seconds": 3600}))
    server = Busy(options.rate)
    stage.use(server)
    for number in range(NODES):
        server.put(f"/api/v1/nodes/n{number}", node(f"n{number}", GPUS))
    for number in range(projects):
        mine = [f"ns-{n}" for n in range(number, namespaces, projects)]
        server.put(f"{ROOT}/gpuprojects/p{number}", gpuproject(f"p{number}", mine, quota=1))
    await stage.lead(Random(0))
    await asyncio.sleep(30)
    server.writes.clear()
    loop = asyncio.get_running_loop()
    if profile is not None:
        profile.enable()
    cpu, began = time.process_time(), loop.time()
    for number in range(jobs):
        await asyncio.sleep(max(0.0, began + number / options.applied - loop.time()))
        await server.takes_one()
        team, name = f"ns-{number % namespaces}", f"job-{number}"
        server.put(f"{ROOT}/namespaces/{team}/gpujobs/{name}", gpujob(name, team, gpu=1))
    applied = loop.time()
    for _ in range(int(_MOST_SECONDS / _LOOK_SECONDS)):
        if all(job.shown.get("phase") for job in stage.operator.state.gpujobs.values()):
            break
        await asyncio.sleep(_LOOK_SECONDS)
    late, took = loop.time() - applied, time.process_time() - cpu
    if profile is not None:
        profile.disable()
    await stage.end()
    writes = ", ".join(f"{count} of {kind}" for kind, count in sorted(server.writes.items()))
    said = f"applied in {applied - began:.1f} s, judged {late:.2f} s later"
    return f"{said}; {writes}; CPU {took:.2f} s"


def main() -> None:
    """Measure one namespace and many, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, default=[5000, 500, 200])
    parser.add_argument("--rate", type=float, default=500, help="writes a second")
    parser.add_argument("--applied", type=float, default=190, help="jobs a second")
    parser.add_argument("--profile", action="store_true", help="of the case of many namespaces")
    options = parser.parse_args()
    jobs, namespaces, projects = options.numbers
    for spaces, owners in ((1, 1), (namespaces, projects)):
        profile = cProfile.Profile() if options.profile and spaces > 1 else None
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            told = runner.run(judged(jobs, spaces, owners, options, profile))
        sys.stdout.write(f"{jobs} jobs, {spaces} namespaces, {owners} projects: {told}\n")
        if profile is not None:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
