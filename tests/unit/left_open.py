"""Connections that nobody closes, found where they are left and not where they are collected."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Fails if what was made within and is garbage at its end has a connection that is open."""
    open_still: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", open_still.append)
        yield
        gc.collect(1)  # what is so young: an open connection complains as it goes
    assert open_still == []
