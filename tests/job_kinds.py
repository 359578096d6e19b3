"""Specs of jobs whose pods are made when they may run, and with them or after them more."""

from typing import Any

_RANDOM = {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}

JOB_KINDS: tuple[dict[str, Any], ...] = (
    {"gpu": 0.5},
    {"gpu": 0.3, "parallelism": 3},
    {"gpu": 0.5, "parallelism": 4, "gang": True},
    {"gpu": 0.5, "parallelism": 2, "completions": 5},
    {"gpu": 0.25, "parallelism": 3, "completions": 6, "sweep": _RANDOM},
    {"roles": [{"name": "lead", "gpu": 1}, {"name": "work", "replicas": 2, "gpu": 0.5}]},
)
