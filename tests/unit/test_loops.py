"""Tests run on the loop that the operator runs on: what only asyncio's own has is a defect."""

import asyncio
import re
from pathlib import Path

HERE = Path(__file__).parent
OF_ASYNCIO = re.compile(r"asyncio\.(run|new_event_loop|SelectorEventLoop)\b")
ALLOWED = {
    "agent/conftest.py",  # the agent runs on it
    "hack/test_fetch_url.py",  # so does what fetches programs, before there is a uvloop
    "runtime/virtual_loop.py",  # its clock cannot be uvloop's
    "web/conftest.py",  # both
}


def test_no_test_chooses_a_loop_by_itself() -> None:
    found = {
        str(path.relative_to(HERE))
        for path in HERE.rglob("*.py")
        if OF_ASYNCIO.search(path.read_text())
    }
    assert found == ALLOWED


async def test_a_coroutine_runs_on_uvloop() -> None:
    assert type(asyncio.get_running_loop()).__module__ == "uvloop"
