"""Foreign processes that stay: a look may simply have been quicker than the operator's word.

A process is reported from the second look on, and no more once it is gone; one of a pod that the
operator has not named only after a while, since the news of a new pod take a few seconds.
"""

from collections.abc import Collection, Mapping

from gpu_scheduler.api.gpunode import ForeignProcess

UNNAMED_SECONDS = 15.0

ForeignByDevice = Mapping[str, list[ForeignProcess]]


class Lasting:
    """Remembers the last look."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def update(
        self, found: ForeignByDevice, unnamed: Collection[int] = (), now: float = 0.0
    ) -> dict[str, list[ForeignProcess]]:
        """Those that were there before too, by device, in the order of their pids.

        Args:
            found: All of this look, by device.
            unnamed: Pids of those in a pod that the operator has not named.
            now: Monotonic seconds.
        """
        before, known = self._since, [(uuid, each.pid) for uuid, each in _pairs(found)]
        self._since = {key: before.get(key, now) for key in known}

        def stays(key: tuple[str, int]) -> bool:
            waited = now - self._since[key]
            return key in before and (key[1] not in unnamed or waited >= UNNAMED_SECONDS)

        lasting = {
            uuid: sorted(
                (each for each in processes if stays((uuid, each.pid))),
                key=lambda each: each.pid,
            )
            for uuid, processes in found.items()
        }
        return {uuid: processes for uuid, processes in lasting.items() if processes}


def _pairs(found: ForeignByDevice) -> list[tuple[str, ForeignProcess]]:
    return [(uuid, each) for uuid, processes in found.items() for each in processes]
