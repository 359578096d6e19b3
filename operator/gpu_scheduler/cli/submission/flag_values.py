"""What is written behind flags of ``submit``: numbers, durations, K=V, parameters, volumes.

Each says which flag was wrong and what would be right.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpu_scheduler.cli.job_names import checked

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 64
_DURATION = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_UNITS = (86_400, 3600, 60, 1)
_FORMS = (
    "/FOLDER/OF/THE/NODE:/HERE, CLAIM:/HERE, with :ro behind it to read alone, or :rw:SERVER of NFS"
)
_EXACT = 2**53  # integers up to here are exact in JSON readers that only know doubles


def number(flag: str, text: str) -> int | float:
    """A number of GPUs.

    Raises:
        ValueError: it is none.
    """
    if not _NUMBER.fullmatch(text) or len(text) > _MOST_DIGITS:
        hint = (
            f"write {text.replace(',', '.')}" if _NUMBER.fullmatch(text.replace(",", ".")) else ""
        )
        right = hint or "write a share of one GPU (0.5), or whole GPUs (2)"
        raise ValueError(f"{flag} {text[:_MOST_DIGITS]!r} is no number of GPUs; {right}")
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def seconds(flag: str, text: str | None) -> int | None:
    """A duration: ``90``, ``90s``, ``1h30m``, ``2d``.

    Raises:
        ValueError: it is none.
    """
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    parts = _DURATION.fullmatch(text)
    if not text or parts is None:
        raise ValueError(
            f"{flag} {text[:_MOST_DIGITS]!r} is no duration; write 90s, 30m, 1h30m or 2d"
        )
    return sum(int(count or 0) * unit for count, unit in zip(parts.groups(), _UNITS, strict=True))


def pairs(flag: str, said: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` each; of two with the same key the last one.

    Raises:
        ValueError: one has no key, or no equals sign.
    """
    found = dict[str, str]()
    for text in said:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{flag} {text[:_MOST_DIGITS]!r}: write KEY=VALUE")
        found[key] = value
    return found


def parameter(text: str) -> tuple[str, list[Any]]:
    """``lr=0.1,0.01``: a parameter of a sweep and its values, with their types.

    Raises:
        ValueError: it has no name, or an empty value, or a number that no double holds.
    """
    name, equals, rest = text.partition("=")
    values = rest.split(",")
    if not equals or not name or not all(values):
        raise ValueError(
            f"--param {text[:_MOST_DIGITS]!r}: write NAME=VALUE,VALUE such as lr=0.1,0.01"
        )
    return name, [_value(name, value) for value in values]


def _value(name: str, text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= _MOST_DIGITS and abs(int(text)) < _EXACT:
        return int(text)
    if not _FLOAT.fullmatch(text):
        return text
    value = float(text)
    lost = value == 0 and re.search("[1-9]", re.split("[eE]", text)[0])
    if lost or not math.isfinite(value):
        raise ValueError(
            f"--param {name}: {text[:_MOST_DIGITS]} is a number that no reader of JSON can "
            "hold; it must be 0, or between 4.9e-324 and 1.8e308 on either side of it"
        )
    return value


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume and its place in the container.

    Attributes:
        source: the volume of a pod, without its name.
        target: folder in the container.
        read_only: whether nothing can be written there.
    """

    source: Mapping[str, Any]
    target: str
    read_only: bool = False

    def put(self, volumes: list[Any]) -> str:
        """Add the volume to those of a pod, if it is not there; its name."""
        taken = set()
        for each in volumes:
            if isinstance(each, dict):
                taken.add(each.get("name"))
                if {k: v for k, v in each.items() if k != "name"} == self.source:
                    return str(each.get("name"))
        name = next(n for i in range(len(taken) + 1) if (n := f"volume-{i}") not in taken)
        volumes.append({"name": name, **self.source})
        return name

    def place(self) -> dict[str, Any]:
        """What stands in the container, but for the name."""
        return {"mountPath": self.target} | ({"readOnly": True} if self.read_only else {})


def volume(text: str) -> Mount:
    """``SRC:DST[:ro|rw[:NFS-SERVER]]``: a folder of the node or of a server, or a claim.

    Raises:
        ValueError: it is none of these.
    """
    return _mount("--volume", text, claim=not text.startswith("/"))


def claim(text: str) -> Mount:
    """``CLAIM:DST[:ro]``, or ``claimname=CLAIM,path=DST[,readonly]`` as newer Run:ai has it.

    Raises:
        ValueError: it is none of these.
    """
    if "=" not in text:
        return _mount("--pvc", text, claim=True)
    fields = dict(each.partition("=")[::2] for each in text.split(","))
    name, target = fields.pop("claimname", ""), fields.pop("path", "")
    read_only = "readonly" in fields and fields.pop("readonly") in ("", "true")
    fields.pop("readwrite", None)
    if fields or not name or not target.startswith("/"):
        raise ValueError(f"--pvc {text!r}: write CLAIM:/HERE, of a claim that exists")
    checked(name, "the name of a claim")
    return Mount({"persistentVolumeClaim": {"claimName": name}}, target, read_only)


def _mount(flag: str, text: str, *, claim: bool) -> Mount:
    source, _, rest = text.partition(":")
    target, _, rest = rest.partition(":")
    mode, _, server = rest.partition(":")
    if not source or not target.startswith("/") or mode not in ("", "ro", "rw") or ":" in server:
        raise ValueError(f"{flag} {text!r}: write {_FORMS}")
    if claim and server:
        raise ValueError(f"{flag} {text!r}: the folder of an NFS server begins with /")
    if claim:
        checked(source, "the name of a claim")
        found: dict[str, Any] = {"persistentVolumeClaim": {"claimName": source}}
    elif server:
        found = {"nfs": {"server": server, "path": source}}
    else:
        found = {"hostPath": {"path": source}}
    return Mount(found, target, mode == "ro")
