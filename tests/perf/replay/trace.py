"""Traces: lists of nodes and of pods as CSV files, compressed with xz or not.

The columns are those of the openb trace (cluster-trace-gpu-v2023): nodes have ``sn``,
``cpu_milli``, ``memory_mib``, ``gpu`` and ``model``; pods ``cpu_milli``, ``memory_mib``,
``num_gpu``, ``gpu_milli`` and, if they name models, ``gpu_spec``. Other columns are left alone. A
file that cannot be used is refused with the line and the column.
"""

import csv
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB

T = TypeVar("T")

MOST_GPUS = 64  # of a node, or of a pod


class TraceError(ValueError):
    """A trace cannot be used; the message says where."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of a trace."""

    name: str
    cpu_milli: int
    memory_bytes: int
    gpus: int
    model: str


def read_nodes(path: Path) -> list[TraceNode]:
    """The nodes of a file.

    Raises:
        TraceError: the file cannot be read, or a value cannot be used.
    """
    return _all(path, _node, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))


def read_pods(path: Path) -> list[PodShape]:
    """The kinds of the pods of a file, in its order.

    Raises:
        TraceError: the file cannot be read, or a value cannot be used.
    """
    return _all(path, _pod, ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))


class _Line:
    """One line of a file, whose values know where they stand."""

    def __init__(self, path: Path, number: int, values: dict[str, str]) -> None:
        self._path = path
        self._number = number
        self._values = values

    def text(self, column: str) -> str:
        return self._values.get(column) or ""

    def whole(self, column: str, least: int, most: int) -> int:
        text = self.text(column).strip()
        try:
            value = int(text)
        except ValueError:
            raise self.error(column, f"{text!r} is not a whole number") from None
        if not least <= value <= most:
            raise self.error(column, f"{value} is not between {least} and {most}")
        return value

    def error(self, column: str, message: str) -> TraceError:
        return TraceError(f"{self._path}: line {self._number}, column {column}: {message}")


_MOST = 1 << 40


def _node(line: _Line) -> TraceNode:
    gpus = line.whole("gpu", 0, MOST_GPUS)
    if gpus and not line.text("model"):
        raise line.error("model", "a node with GPUs needs one")
    return TraceNode(
        name=line.text("sn") or "-",
        cpu_milli=line.whole("cpu_milli", 0, _MOST),
        memory_bytes=line.whole("memory_mib", 0, _MOST) * MIB,
        gpus=gpus,
        model=line.text("model"),
    )


def _pod(line: _Line) -> PodShape:
    count = line.whole("num_gpu", 0, MOST_GPUS)
    devices: tuple[DeviceRequest, ...] = ()
    if count:
        devices = (DeviceRequest(0, count, line.whole("gpu_milli", 1, DEVICE_MILLI)),)
    models = {part.strip().lower() for part in line.text("gpu_spec").split("|")} - {""}
    return PodShape(
        devices=devices,
        models=tuple(sorted(models)) if count else (),
        cpu_milli=line.whole("cpu_milli", 0, _MOST),
        memory_bytes=line.whole("memory_mib", 0, _MOST) * MIB,
    )


def _all(path: Path, make: Callable[[_Line], T], columns: tuple[str, ...]) -> list[T]:
    found = [make(line) for line in _lines(path, columns)]
    if not found:
        raise TraceError(f"{path}: line 2: there is nothing below the heading")
    return found


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[_Line]:
    opener = lzma.open if path.suffix == ".xz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for column in columns:
                if column not in (reader.fieldnames or ()):
                    raise TraceError(f"{path}: line 1: there is no column {column}")
            for values in reader:
                line = _Line(path, reader.line_num, values)
                if None in values or None in values.values():
                    fields = len(reader.fieldnames or ())
                    raise line.error(columns[0], f"the line does not have {fields} fields")
                yield line
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, lzma.LZMAError, EOFError, csv.Error) as error:
        raise TraceError(f"{path}: {error}") from None
