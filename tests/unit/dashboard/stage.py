"""A leader of one node with a project, and who makes pictures of what it knows."""

from types import SimpleNamespace
from typing import Any

from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import gpujob_body, make_project

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.reading.picture_maker import PictureMaker
from gpu_scheduler.runtime.usage.charting.chart_keeper import ChartKeeper
from gpu_scheduler.runtime.usage.charting.earlier_holders import EarlierHolders
from gpu_scheduler.runtime.usage.cluster_use import ClusterUses


class Stage(UsageStage):
    """With a project, and who makes pictures of it."""

    def __init__(self) -> None:
        super().__init__()
        self.state.nodes.report_gone(NODE)  # its devices are those of the labels
        self.state.project_changed(make_project("vision", "team-a", quota_milli=1000))
        self.charts = ChartKeeper(self.common, ClusterUses(self.common, self.seen, self.minute))
        self.earlier = EarlierHolders(self.state, self.common.clock)
        self.maker = self.new_maker()

    def new_maker(self) -> PictureMaker:
        """One that has seen nothing yet."""
        usage = SimpleNamespace(
            seen=self.seen,
            minute=self.minute,
            charts=self.charts,
            cluster=ClusterUses(self.common, self.seen, self.minute),
            asker=object(),
            earlier=self.earlier,
        )
        leader: Any = SimpleNamespace(common=self.common, state=self.state, usage=usage)
        return PictureMaker(leader)

    async def picture(self) -> Picture:
        self.seconds += 1
        return await self.maker.look()

    def waits(self, name: str = "later", **status: Any) -> None:
        body = gpujob_body(name, uid=name, gpu=0.5, parallelism=2, completions=2)
        self.resources.gpujob(body | {"status": status})
        for record in self.state.gpujobs.values():
            if record.name == name:
                record.status = status
