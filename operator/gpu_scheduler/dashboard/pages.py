"""The table of pages: address, and the function that makes it of a picture of the cluster.

A page is a pure function of the picture, of what the reader may see, and of what was asked for.
None: there is no such thing, or the reader may not see it, which nobody can tell apart.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gpu_scheduler.dashboard.content import device, gpus, jobs, overview, projects, queue, sweeps
from gpu_scheduler.dashboard.content.chart import chart
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import BadQuestionError, RequestParameters
from gpu_scheduler.dashboard.rows import View
from gpu_scheduler.dashboard.visible import Visible

__all__ = ["PAGES", "BadQuestionError", "Page", "RequestParameters"]


@dataclass(frozen=True, slots=True)
class Page:
    """One of them.

    Attributes:
        path: below /api/v1, as aiohttp writes it.
        make: what it says.
        live: whether it asks ``Picture.details``, which are read of this moment: made where the
            state may be read. All others may be made in any thread.
    """

    path: str
    make: Callable[[Picture, Visible, RequestParameters], View | None]
    live: bool = False


PAGES: tuple[Page, ...] = (
    Page("overview", overview.page),
    Page("gpus", gpus.page),
    Page("gpus/{node}/{index}", device.page, live=True),
    Page("queue", queue.page),
    Page("jobs", jobs.page),
    Page("jobs/{namespace}/{kind}/{name}", jobs.one, live=True),
    Page("projects", projects.page),
    Page("projects/{name}", projects.one),
    Page("sweeps", sweeps.page),
    Page("sweeps/{namespace}/{name}", sweeps.one, live=True),
    Page("chart", chart, live=True),
)
