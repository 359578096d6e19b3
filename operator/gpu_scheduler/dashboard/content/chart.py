"""GPUs over time."""

from gpu_scheduler.dashboard.content.rows import projects_for
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters, one_of
from gpu_scheduler.dashboard.views import ChartView
from gpu_scheduler.dashboard.visible import Visible

SPANS = ("24h", "1h", "7d")


def chart(picture: Picture, visible: Visible, asked: RequestParameters) -> ChartView | None:
    """Asked for: span, project; the cluster's for those who may see its nodes.

    Raises:
        BadQuestionError: the span is none of those kept.
    """
    span, project = one_of(asked, "span", SPANS), asked.get("project", "")
    if project:
        if all(row.name != project for row in projects_for(picture.projects, visible)):
            return None
    elif not (visible.all or visible.inventory):
        return None
    return picture.details.chart(project, span)
