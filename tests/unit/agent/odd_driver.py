"""A driver whose every answer may be odd: what a test draws, at every call anew."""

from collections.abc import Callable
from typing import Any

from tests.unit.agent.fake_driver import FakeDriver

from gpu_scheduler.agent.driver import DeviceMemory, DeviceProperties, GpuProcess, Load, Vitals, Xid

Draw = Callable[[str, Any], Any]


class OddDriver(FakeDriver):
    """``draw`` is given the name of a call and the honest answer: it answers, or raises."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw = draw

    def open(self) -> None:
        self.draw("open", None)
        super().open()

    def version(self) -> str:
        return self.draw("version", super().version())

    def count(self) -> int:
        return self.draw("count", super().count())

    def facts(self, index: int) -> DeviceProperties:
        return self.draw("facts", super().facts(index))

    def memory(self, index: int) -> DeviceMemory | None:
        return self.draw("memory", super().memory(index))

    def processes(self, index: int) -> list[GpuProcess]:
        return self.draw("processes", super().processes(index))

    def load(self, index: int) -> Load:
        return self.draw("load", super().load(index))

    def busy_by_pid(self, index: int, since_us: int) -> tuple[dict[int, float] | None, int]:
        return self.draw("busy", super().busy_by_pid(index, since_us))

    def vitals(self, index: int) -> Vitals:
        return self.draw("vitals", super().vitals(index))

    def xids(self) -> list[Xid]:
        return self.draw("xids", super().xids())
