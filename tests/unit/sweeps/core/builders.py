"""A search, an objective and outcomes with few words."""

from typing import Any

from gpu_scheduler.api.search import (
    Algorithm,
    Constant,
    Goal,
    IntRange,
    LogUniform,
    Objective,
    Parameters,
    Search,
    Space,
    Uniform,
    Values,
)
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState

LOSS = Objective("val_loss")
ACCURACY = Objective("acc", Goal.MAXIMIZE)

MIXED = Space(
    {
        "lr": LogUniform(1e-5, 1e-1),
        "batch_size": Values((32, 64, 128)),
        "dropout": Uniform(0.0, 0.5),
        "layers": IntRange(2, 10, 2),
        "opt": Constant("adam"),
    }
)
GRID = Space({"lr": Values((0.1, 0.01, 0.001)), "batch": IntRange(16, 64, 16)})


def search(algorithm: str, space: Space = MIXED, seed: int = 7, **fields: Any) -> Search:
    return Search(Algorithm(algorithm), space, seed, **fields)


def listed(*trials: Parameters) -> Search:
    return Search(Algorithm.LIST, Space({}), 0, trials)


def done(trial: int, value: float, **fields: Any) -> Outcome:
    return Outcome(trial, TrialState.SUCCEEDED, value, **fields)


def broken(trial: int, message: str = "exit code 1") -> Outcome:
    return Outcome(trial, TrialState.FAILED, message=message)
