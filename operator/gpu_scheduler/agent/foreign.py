"""Foreign processes that stay: one look may simply have been quicker than the watch of pods.

A process is reported from the second look on, and no more once it is gone. Called by the agent
after each sample.
"""

from collections.abc import Mapping

from gpu_scheduler.api.gpunode import ForeignProcess

Found = Mapping[str, list[ForeignProcess]]


class Lasting:
    """Remembers the last look."""

    def __init__(self) -> None:
        self._before: set[tuple[str, int]] = set()

    def look(self, found: Found) -> dict[str, list[ForeignProcess]]:
        """Those that were there before too, by device, in the order of their pids."""
        lasting = {
            uuid: sorted(
                (each for each in processes if (uuid, each.pid) in self._before),
                key=lambda each: each.pid,
            )
            for uuid, processes in found.items()
        }
        self._before = {(uuid, each.pid) for uuid, each in _pairs(found)}
        return {uuid: processes for uuid, processes in lasting.items() if processes}


def _pairs(found: Found) -> list[tuple[str, ForeignProcess]]:
    return [(uuid, each) for uuid, processes in found.items() for each in processes]
