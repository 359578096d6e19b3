"""Many jobs that wait: the part ``queues``, measured from outside on a real control plane.

Every scene of every contender has a control plane of its own, so nothing of another is left in it.
A round plays each scene with each contender in turn, and the order turns from round to round. A
scene that fails is told as an error, and the others go on. Called by ``python -m tests.perf``.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop
from tests.perf.contenders import MILLI, STOCK, Contender
from tests.perf.install import cluster, say
from tests.perf.queue_churn import churn, turnover
from tests.perf.queue_figures import summary
from tests.perf.queue_scenes import fits, waiting
from tests.perf.queue_stand import Stand, stand
from tests.perf.settings import GPUS_PER_NODE, RAISED_QPS, ROOT, Settings, Sizes

from cluster import ClusterError
from gpu_scheduler.kube.errors import ApiError


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of load.

    Attributes:
        name: on the command line.
        play: gives the figures.
        jobs: how many, of the sizes.
        stock: the stock scheduler plays it, too.
    """

    name: str
    play: Callable[[Stand, int], Awaitable[dict[str, Any]]]
    jobs: Callable[[Sizes], int]
    stock: bool = False


SCENES = (
    Scene("waiting", waiting, lambda sizes: sizes.queue_jobs),
    Scene("fits", fits, lambda sizes: sizes.queue_fitting_jobs, stock=True),
    Scene("churn", churn, lambda sizes: sizes.queue_jobs, stock=True),
    Scene("turnover", turnover, lambda sizes: sizes.queue_jobs, stock=True),
    Scene("many", waiting, lambda sizes: sizes.queue_many_jobs),
    Scene("churn-many", churn, lambda sizes: sizes.queue_many_jobs),
)
NAMES = tuple(scene.name for scene in SCENES)


def measure(
    settings: Settings,
    contenders: Sequence[Contender],
    result: dict[str, Any],
    keep: Callable[[], object],
) -> None:
    """Put runs and their summary into ``result``, and ``keep`` it after each run."""
    runs: list[dict[str, Any]] = []
    result["contenders"] = {each.name: each.described() for each in contenders}
    result["runs"] = runs
    for number, scene, contender in turns(settings, contenders):
        say(f"round {number + 1}/{settings.sizes.queue_rounds}: {scene.name}, {contender.name}")
        run: dict[str, Any] = {
            "scene": scene.name,
            "contender": contender.name,
            "round": number,
            "load_at_start": round(os.getloadavg()[0], 2),  # of others on the machine
        }
        try:
            run["figures"] = _play(settings, scene, contender)
        except (ClusterError, ApiError, TimeoutError, RuntimeError) as error:
            say(f"  error: {type(error).__name__}: {error}")
            run["error"] = f"{type(error).__name__}: {error}"
        runs.append(run)
        result["summary"] = summary(runs)
        keep()


def turns(
    settings: Settings, contenders: Sequence[Contender]
) -> Iterator[tuple[int, Scene, Contender]]:
    """What is played one after the other: round, scene and contender."""
    scenes = [each for each in SCENES if each.name in (settings.scenes or NAMES)]
    for number in range(settings.sizes.queue_rounds):
        first = number % len(contenders)
        for scene in scenes:
            for contender in (*contenders[first:], *contenders[:first]):
                if scene.stock or contender != STOCK:
                    yield number, scene, contender


def _play(settings: Settings, scene: Scene, contender: Contender) -> dict[str, Any]:
    sizes = settings.sizes
    with cluster(
        f"{settings.name}-queues",
        nodes=sizes.queue_nodes,
        qps=RAISED_QPS,
        also={MILLI: str(GPUS_PER_NODE * 1000)},
        root=contender.root or ROOT,
    ) as running:

        async def play() -> dict[str, Any]:
            async with stand(running, contender, sizes) as found:
                return await scene.play(found, scene.jobs(sizes))

        return uvloop.run(play())
