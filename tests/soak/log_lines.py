"""What an operator's log says most often, and what it repeats although nothing has changed.

Lines are the same if they differ in names, numbers and times only. A line is repeated without a
change where it is said of an object that it was said of the last time, in the same words, and
nothing of that object has changed in between. What has no object is its own. A watch and the lease
change with what happens to the connections to the API server.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

# As ``cli.starting`` has it: 2026-01-01 12:00:00,000 INFO gpu_scheduler.runtime.binding.binder: …
_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (\w+) ([\w.]+): (.*)$")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?")
_OBJECT = re.compile(r"(?<![\w./-])([a-z][\w.-]*/[a-z0-9](?:[\w.-]*\w)?)(?![\w/])")
_PATH = re.compile(r"/(?:api|apis)/[^\s:?]*(?:\?\S*)?")
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b")
_NAME = re.compile(r"\b[A-Za-z][\w.]*-[\w.-]*\d[\w.-]*")  # share-17, gpu-0003, replica-2_x
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OF_CONNECTIONS = (
    "kube.reflector",
    "kube.watches",
    "kube.lease",
    "controllers.session",
    "kopf.",
)
AFTER_SECONDS, BEFORE_SECONDS = 2.0, 10.0
"""So long a change may be seen after the line that tells of it, or before."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``at`` in epoch seconds, as the machine's time zone has it."""

    at: float
    logger: str
    text: str

    @property
    def shape(self) -> str:
        """The line without what differs from object to object."""
        text = _PATH.sub("<path>", _ID.sub("<id>", _TIMES.sub("<time>", self.text)))
        text = _NAME.sub("<name>", _QUOTED.sub("<name>", _OBJECT.sub("<object>", text)))
        return f"{self.logger}: {_NUMBER.sub('<n>', text)}"

    @property
    def words(self) -> str:
        """The line without what differs from moment to moment."""
        text = _ID.sub("<id>", _TIMES.sub("<time>", self.text))
        return re.sub(r"\b\d+\.\d+ s\b", "<n> s", text)

    @property
    def about(self) -> str:
        """The object, as ``namespace/name``; the line's own shape where there is none."""
        found = _OBJECT.search(_PATH.sub(_as_object, self.text))
        return found[1] if found else self.shape


def _as_object(path: re.Match[str]) -> str:
    parts = path[0].partition("?")[0].strip("/").split("/")
    if "namespaces" in parts[:-3]:
        at = parts.index("namespaces")
        return f"{parts[at + 1]}/{parts[at + 3]}"
    return path[0]


@dataclass(slots=True)
class LogLines:
    """The lines of all replicas, each replica's on its own."""

    changes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """When objects changed, as somebody else has seen it: epoch seconds, by ``namespace/name``."""
    cuts: Sequence[tuple[float, float]] = ()
    """When connections to the API server were cut or held up: from when until when."""
    counts: Counter[str] = field(default_factory=Counter)
    repeats: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By object and words."""

    def read(self, text: str) -> None:
        """The log of one process."""
        last: dict[tuple[str, str], Line] = {}
        for line in lines(text):
            self.counts[line.shape] += 1
            key = line.about, line.logger
            before, last[key] = last.get(key), line
            if before is not None and before.words == line.words:
                if not self._changed(line, before.at):
                    self.repeats[line.about, line.words] += 1

    def most(self, count: int = 10) -> list[tuple[int, str]]:
        """The most frequent lines."""
        return [(number, shape) for shape, number in self.counts.most_common(count)]

    def repeated(self) -> list[str]:
        """What was said again of an object without a change, the most often first."""
        return [
            f"{count + 1} times of {about}: {words}"[:400]
            for (about, words), count in self.repeats.most_common()
        ]

    def _changed(self, line: Line, since: float) -> bool:
        """Whether the object, or the one whose pod it is, changed between two lines."""
        about, until = line.about, line.at
        if line.logger.startswith(_OF_CONNECTIONS):
            return any(a - AFTER_SECONDS <= until <= b + BEFORE_SECONDS for a, b in self.cuts)
        names = [about] if about in self.changes else _owners(about, self.changes)
        return any(
            since - AFTER_SECONDS <= at <= until + BEFORE_SECONDS
            for name in names
            for at in self.changes[name]
        )


def _owners(pod: str, known: Iterable[str]) -> list[str]:
    """GPUJobs that a pod may be of: its name begins with theirs."""
    name, found = pod, []
    while "-" in name:
        name = name.rpartition("-")[0]
        if name in known:
            found.append(name)
    return found


def lines(text: str) -> Iterator[Line]:
    """Those that begin with a time; tracebacks are counted elsewhere."""
    for each in text.splitlines():
        if found := _LINE.match(each):
            at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()
            yield Line(at, found[3].removeprefix("gpu_scheduler."), found[4])
