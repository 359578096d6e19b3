"""The wheel and the sdist, built by the pinned hatchling without a look at any index."""

import os
from pathlib import Path

from release.environment import Environment
from release.source import Source


def build(source: Source, environment: Environment, target: Path) -> list[Path]:
    """Build both into `target`; their paths.

    Raises:
        ReleaseError: with what hatchling said.
    """
    before = set(target.iterdir())
    environment.run(
        ["-m", "hatchling", "build", "-d", str(target)],
        folder=source.root,
        SOURCE_DATE_EPOCH=str(source.epoch),
    )
    made = sorted(set(target.iterdir()) - before)
    for path in made:
        path.chmod(0o644)
        os.utime(path, (source.epoch, source.epoch))
    return made
