"""Which kinds the plugin reads, and of a large one which fields; the rest is not typed at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from headlamp_types.typescript import Schema, interfaces

CRDS = Path(__file__).parents[2] / "crds"
READ: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "GPUJob": {
        "spec": ("type", "priority", "suspend", "sweep"),
        "spec.sweep": ("algorithm", "objective"),
    },
    "GPUProject": {},
    "GPUNode": {"status": ("devices",)},
    "GPUUsage": {"status": ("observedAt", "gpus", "workloads", "omitted")},
}
"""Kinds, and of their objects that are named here these fields alone."""

_HEAD = """\
// Generated from crds/ by `make headlamp-types`; which fields: hack/headlamp_types/kinds.py.

import type { Metadata } from './metadata.ts';
"""


def text() -> str:
    """The module."""
    found = [
        line for kind, only in READ.items() for line in interfaces(kind, _schema(kind), only.get)
    ]
    return "\n".join([_HEAD, *found])


def _schema(kind: str) -> Schema:
    [path] = CRDS.glob(f"*_{kind.lower()}*.yaml")
    definition: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    [version] = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema
