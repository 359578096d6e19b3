"""What the leader knows, in one moment: all that pages are made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """``at``: epoch seconds."""

    at: float
