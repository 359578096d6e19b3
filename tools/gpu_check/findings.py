"""A finding: one line of the table, and one entry of the report.

A finding is ``held`` only when a figure says so. What did not run is ``skipped`` and never counts
as held; what has no promise to keep is ``measured``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

GRANULE_MIB = 2  # in which the driver hands out device memory
POOL_GRANULE_MIB = 32  # in which its pools take it

Figures = Mapping[str, float | int | str | None]  # by a name that ends in the unit


class Verdict(StrEnum):
    """What became of a check."""

    HELD = "held"
    FAILED = "FAILED"
    SKIPPED = "skipped"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line.

    Attributes:
        check: what was looked at, for example ``alloc``.
        how: how the program found the driver, or with what.
        verdict: whether it held.
        note: what went wrong, why it was skipped, or what the figures mean.
        cap_mib, got_mib: the cap of the run, and what the program got of it.
        figures: every other number.
    """

    check: str
    how: str
    verdict: Verdict
    note: str = ""
    cap_mib: int | None = None
    got_mib: float | None = None
    figures: Figures = field(default_factory=dict)


def skipped(check: str, how: str, why: str) -> Finding:
    """A check that did not run."""
    return Finding(check, how, Verdict.SKIPPED, why)


def failed(check: str, how: str, what: str, **figures: float | int | str | None) -> Finding:
    """A check that did not hold, or did not come to its end."""
    return Finding(check, how, Verdict.FAILED, what, figures=figures)


class CannotRunError(Exception):
    """The whole check cannot run here; the message says why and what would be needed."""
