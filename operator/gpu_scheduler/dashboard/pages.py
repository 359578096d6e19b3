"""The table of pages: address, and the function that makes it of a picture of the cluster.

A page is a pure function of the picture, of what the reader may see, and of what was asked for:
the parts of the address and the parameters after it, as text. None: there is no such thing, or the
reader may not see it, which nobody can tell apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.views import View
from gpu_scheduler.dashboard.visible import Visible

Asked = Mapping[str, str]


class BadQuestionError(ValueError):
    """A parameter that cannot be understood; says which, and what it may be."""


@dataclass(frozen=True, slots=True)
class Page:
    """``path``: below /api/v1, as aiohttp writes it."""

    path: str
    make: Callable[[Picture, Visible, Asked], View | None]


PAGES: tuple[Page, ...] = ()
