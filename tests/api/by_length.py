"""Which worker of pytest-xdist gets which tests: whole files, and those that take long first.

A long file that starts last would run alone at the end. Files of one folder have a cluster in
common and stay together.
"""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TIER = PurePosixPath("tests/api")

# By name, from the longest on: those that wait for long, then those that ask a lot of the machine.
# Which files are not named here hardly matters.
LONG = (
    "test_api_server_away.py",
    "test_kills.py",
    "test_sweeps.py",
    "test_gangs.py",
    "test_gang_failures.py",
    "test_share_promises.py",
    "test_fair_share.py",
    "test_consolidation.py",
    "test_faults.py",
    "test_local_cluster.py",
    "test_holders.py",
    "admission",
    "test_sweep_results.py",
    "test_isolation.py",
    "test_classes.py",
    "test_sweep_reports.py",
)


def place_of(path: str) -> int:
    """Where a file's tests come in the order of all."""
    return LONG.index(unit) if (unit := unit_of(path)) in LONG else len(LONG)


def unit_of(path: str) -> str:
    """What stays together with a file: the file itself, or its folder."""
    found = PurePosixPath(path)
    return found.name if found.parent == TIER else found.parent.name


class WholeUnits(LoadScopeScheduling):
    """Hands out units of tests in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # by the number of tests, that is
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid.partition("::")[0])
