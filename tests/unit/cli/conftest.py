"""``kubectl gpu`` on three jobs, where a file says nothing else of ``objects``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call, calling, three_jobs


@pytest.fixture
def objects() -> Objects:
    return three_jobs()


@pytest.fixture
def call(objects: Objects, tmp_path: Path) -> Iterator[Call]:
    with calling(objects, tmp_path) as found:
        yield found
