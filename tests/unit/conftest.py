"""For all unit tests: hypothesis asserts no time, and generates the same examples in every run.

What depends on luck would refuse a change that has nothing to do with it. Others are generated with
``EXPLORE_SEED`` in the environment (``make explore``). Without a deadline the health check of
hypothesis, too, gives slow generation of examples 30 s instead of one.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop
from hypothesis import core, settings
from tests.unit.parts import EXPLORE_SEED
from tests.unit.ports import reserved_port

settings.register_profile(
    "unit",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    database=None,
    derandomize=EXPLORE_SEED is None,
    print_blob=True,
)
settings.load_profile("unit")
if EXPLORE_SEED is not None:
    core.global_force_seed = EXPLORE_SEED  # what --hypothesis-seed sets


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The operator runs on uvloop, so its tests do."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def port() -> Iterator[int]:
    """A port of loopback that is nobody else's, for a server that is told one."""
    with reserved_port() as found:
        yield found
