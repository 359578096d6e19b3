"""The GPUs as bars: pure functions from devices and allocations to lines.

A bar has one segment per holder, each with its own look, so that two jobs on one GPU can be told
apart with and without colour.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from demo.terminal import paint, symbol

WIDTH = 20  # characters of a whole GPU
_COLOURS = ("36", "33", "35", "32", "34")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device and who holds how much of it.

    Attributes:
        node: its node.
        index: on the node.
        model: as people say it, for example A100.
        fake: whether its node is one that runs nothing.
        held: milli-GPU by pod's job; several pods of one job add up in ``pods``.
        pods: number of holding pods by job.
    """

    node: str
    index: int
    model: str
    fake: bool = False
    held: Mapping[str, int] = field(default_factory=dict)
    pods: Mapping[str, int] = field(default_factory=Counter)


def lines(gpus: Sequence[Gpu], *, width: int = WIDTH) -> list[str]:
    """One line per GPU, aligned; nodes in the order given."""
    names = [f"{gpu.node}/{gpu.index}" + (" (fake)" if gpu.fake else "") for gpu in gpus]
    column = max(map(len, names), default=0)
    models = max((len(gpu.model) for gpu in gpus), default=0)
    looks = _looks(gpus)
    return [
        f"  {name:<{column}}  {gpu.model:<{models}}  {bar(gpu, looks, width)}"
        f"  {sum(gpu.held.values()) / 1000:.2f}  {holders(gpu, looks)}".rstrip()
        for name, gpu in zip(names, gpus, strict=True)
    ]


def bar(gpu: Gpu, looks: Mapping[str, int], width: int) -> str:
    """Segments of the holders, then what is free."""
    text, drawn, milli = "", 0, 0
    for job, share in gpu.held.items():
        milli += share
        end = round(width * milli / 1000)
        text += _segment(end - drawn, looks[job])
        drawn = end
    return text + paint(symbol("░", ".") * (width - drawn), "2")


def holders(gpu: Gpu, looks: Mapping[str, int]) -> str:
    """``frac05 0.50 + frac03 0.30``, with the number of pods where a job has several here."""
    parts = []
    for job, milli in gpu.held.items():
        count = gpu.pods.get(job, 1)
        text = f"{job} {milli / count / 1000:.2f}" + (f" x {count}" if count > 1 else "")
        parts.append(paint(text, _COLOURS[looks[job] % len(_COLOURS)]))
    return " + ".join(parts)


def _segment(length: int, look: int) -> str:
    glyph = (symbol("█", "#"), symbol("▓", "="), symbol("▒", "+"))[look % 3]
    return paint(glyph * length, _COLOURS[look % len(_COLOURS)])


def _looks(gpus: Sequence[Gpu]) -> dict[str, int]:
    jobs = dict.fromkeys(job for gpu in gpus for job in gpu.held)
    return {job: number for number, job in enumerate(jobs)}
