"""What the operator asks of the API server, by the API server's own audit log.

A request is for the sake of what it names. A GPUJob and its Job have one name, and an Event's
begins with that of what it tells of. Lists and watches are for nobody's sake.
"""

from collections import Counter, defaultdict
from pathlib import Path

from tests.perf.audit import Line, lines_from

WINDOW_SECONDS = 10.0
"""Over so long a rate is measured: what is told of an object once comes at once."""


class RequestsMade:
    """Those of one user, read as the log grows."""

    def __init__(self, log: Path, user: str) -> None:
        self._log, self._user = log, user
        self._offset = 0
        self._watches: set[str] = set()  # ids of which the beginning was counted
        self.times: list[float] = []  # epoch seconds
        self.by_object: dict[str, list[float]] = defaultdict(list)
        self.kinds: Counter[str] = Counter()
        """By verb and resource."""

    def read(self) -> None:
        """What has been logged since the last time."""
        if not self._log.exists():
            return
        for line, offset in lines_from(self._log, self._offset):
            self._offset = offset
            if line.user.username != self._user or line.audit_id in self._watches:
                continue
            if line.verb == "watch":
                self._watches.add(line.audit_id)
            at = line.request_received_timestamp.timestamp()
            what = line.object_ref
            self.times.append(at)
            self.kinds[f"{line.verb} {what.resource}/{what.subresource}".rstrip("/")] += 1
            if what.name:
                self.by_object[sake(line)].append(at)

    def a_second(self, since: float, until: float) -> float:
        """How many between two times, in the mean."""
        return sum(since <= at < until for at in self.times) / max(1e-9, until - since)

    def most_for_one(self) -> tuple[float, str]:
        """The highest rate for the sake of one object, and of which."""
        found = ((_most(times), name) for name, times in self.by_object.items())
        return max(found, default=(0.0, ""))


def sake(line: Line) -> str:
    """The object for whose sake a request is made."""
    what = line.object_ref
    name = what.name.rpartition(".")[0] if what.resource == "events" else what.name
    return f"{what.namespace}/{name}"


def _most(times: list[float]) -> float:
    ordered, most, first = sorted(times), 0, 0
    for last, at in enumerate(ordered):
        while at - ordered[first] > WINDOW_SECONDS:
            first += 1
        most = max(most, last - first + 1)
    return most / WINDOW_SECONDS
