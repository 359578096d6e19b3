"""Where everything is kept that outlives a checkout. By itself, as every test reads it."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Its root: `GPU_SCHEDULER_CACHE`, or a folder of the user's cache."""
    own = os.environ.get("GPU_SCHEDULER_CACHE")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gpu-scheduler"
