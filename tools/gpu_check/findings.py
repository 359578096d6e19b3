"""A finding: one line of the table, and one entry of the report.

A finding is ``held`` only when a figure says so. What did not run is ``skipped`` and never counts
as held; what has no promise to keep is ``measured``.
"""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
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


class CannotRunError(Exception):
    """The whole check cannot run here; the message says why and what would be needed."""


class SkippedError(Exception):
    """One line cannot run here, or would say nothing; the message says why."""


class ProbeError(Exception):
    """A process did not do what it was told; the message says what it did instead."""


Way = tuple[str, str, Callable[[str, str], Finding | Iterable[Finding]]]


def each(ways: Iterable[Way]) -> Iterator[Finding]:
    """The findings of all ways, each called with its names; none ends those behind it."""
    for check, how, run in ways:
        try:
            found = run(check, how)
            yield from [found] if isinstance(found, Finding) else found
        except SkippedError as error:
            yield Finding(check, how, Verdict.SKIPPED, str(error))
        except (ProbeError, OSError, subprocess.SubprocessError) as error:
            yield Finding(check, how, Verdict.FAILED, str(error))


def said(*wrong: str) -> str:
    """What went wrong, without what did not."""
    return "; ".join(filter(None, wrong))


def last_line(text: str) -> str:
    """The last of what a program complained of."""
    return (text.strip().splitlines() or ["no word"])[-1]


def judged(
    check: str,
    how: str,
    wrong: str,
    cap_mib: int | None,
    got_mib: float | None = None,
    figures: Figures | None = None,
) -> Finding:
    """One that held, unless something is wrong."""
    verdict = Verdict.FAILED if wrong else Verdict.HELD
    return Finding(check, how, verdict, wrong, cap_mib, got_mib, figures or {})
