"""Jobs that come at once, all in one namespace or over many: the CPU until each was judged.

``python -m tests.perf.many_namespaces [JOBS NAMESPACES PROJECTS] [--profile]`` plays the whole
operator on the API server in memory of the generated histories, in virtual time, and prints CPU
seconds of this process, that server's part among them; needs no cluster.
"""

import argparse
import asyncio
import cProfile
import pstats
import sys
import time
from random import Random

from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

NODES, GPUS = 4, 8
_LOOK_SECONDS, _MOST_SECONDS = 0.05, 600.0  # of the virtual clock


async def judged(jobs: int, namespaces: int, projects: int, profile: cProfile.Profile) -> float:
    """CPU seconds from the first job on until each says why it waits, or runs."""
    stage = Stage(settings=SETTINGS.model_copy(update={"resync_seconds": 3600}))
    for number in range(NODES):
        stage.server.put(f"/api/v1/nodes/n{number}", node(f"n{number}", GPUS))
    for number in range(projects):
        mine = [f"ns-{n}" for n in range(number, namespaces, projects)]
        made = gpuproject(f"p{number}", mine, quota=1)
        stage.server.put(f"{ROOT}/gpuprojects/p{number}", made)
    await stage.lead(Random(0))
    profile.enable()
    started = time.process_time()
    for number in range(jobs):
        team, name = f"ns-{number % namespaces}", f"job-{number}"
        stage.server.put(f"{ROOT}/namespaces/{team}/gpujobs/{name}", gpujob(name, team, gpu=1))
    for _ in range(int(_MOST_SECONDS / _LOOK_SECONDS)):
        await asyncio.sleep(_LOOK_SECONDS)
        if all(job.shown.get("phase") for job in stage.operator.state.gpujobs.values()):
            break
    took = time.process_time() - started
    profile.disable()
    await stage.end()
    return took


def main() -> None:
    """Measure one namespace and many, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, default=[5000, 500, 200])
    parser.add_argument("--profile", action="store_true", help="of the case of many namespaces")
    options = parser.parse_args()
    jobs, namespaces, projects = options.numbers
    for spaces, owners in ((1, 1), (namespaces, projects)):
        profile = cProfile.Profile() if options.profile and spaces > 1 else _Off()
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            took = runner.run(judged(jobs, spaces, owners, profile))
        sys.stdout.write(
            f"{jobs} jobs, {spaces} namespaces, {owners} projects: {took:6.2f} s of CPU\n"
        )
        if options.profile and spaces > 1:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


class _Off(cProfile.Profile):
    """A profile of nothing."""

    def enable(self, *_: bool) -> None:
        """Do nothing."""

    def disable(self) -> None:
        """Do nothing."""


if __name__ == "__main__":
    main()
