"""The values of trials as their pods show them: a trial keeps its own, whoever makes its pods."""

from collections.abc import Iterable
from typing import Any

from gpu_scheduler.api.names import HPARAMS, LABEL_JOB, TRIAL

TrialValues = dict[tuple[str, int], str]  # by GPUJob's name and trial, as JSON


def see(pods: Iterable[dict[str, Any]], values: TrialValues) -> None:
    """Add what these pods show; an error when a trial had other values before."""
    for pod in pods:
        told = pod["metadata"].get("annotations") or {}
        if HPARAMS in told:
            key = pod["metadata"]["labels"][LABEL_JOB], int(told[TRIAL])
            assert values.setdefault(key, told[HPARAMS]) == told[HPARAMS], pod["metadata"]["name"]
