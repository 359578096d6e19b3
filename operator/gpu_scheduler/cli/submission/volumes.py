"""Volumes as flags say them: ``-v SRC:DST``, ``--pvc CLAIM:DST``. Called by ``submit``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.cli.job_names import checked

_FORMS = (
    "/FOLDER/OF/THE/NODE:/HERE, CLAIM:/HERE, with :ro behind it to read alone, or :rw:SERVER of NFS"
)


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
