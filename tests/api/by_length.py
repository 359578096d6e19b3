"""Which worker of pytest-xdist gets which tests: whole files, and those that take long first.

A long file that starts last would run alone at the end. How long each takes is what earlier runs
have recorded. Files stay whole because their tests have an operator in common; those of a folder
with a cluster of its own stay together.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest
from tests.suite.durations import seconds_of
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

WITH_A_CLUSTER = {PurePosixPath("tests/api/admission")}
NEW_SECONDS = 2.0  # for a test that nobody has run yet


def unit_of(nodeid: str) -> str:
    """What stays together with a test: its file, or the folder that has a cluster."""
    path = PurePosixPath(nodeid.partition("::")[0])
    return str(path.parent if path.parent in WITH_A_CLUSTER else path)


def length(nodeids: Iterable[str]) -> float:
    """Seconds that these tests take together, one after the other."""
    return sum(NEW_SECONDS if (s := seconds_of(each)) is None else s for each in nodeids)


class LongestFirst(LoadScopeScheduling):
    """Whoever has little left to do gets the longest unit that is left."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # by the number of tests, that is
        super().__init__(config, log)
        self._lengths: dict[str, float] = {}

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        for unit, tests in self.workqueue.items():
            if unit not in self._lengths:
                self._lengths[unit] = length(tests)
        longest = max(self.workqueue, key=lambda unit: self._lengths[unit])
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
