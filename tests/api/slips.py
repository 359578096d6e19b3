"""Slips of the hand: one thing wrong anywhere in a GPUJob that is right.

The paths of a pod's template are those of the API server's own OpenAPI document, so every field
that it knows is met; those of sweeps, roles, checkpoints and the short form are the CRD's. What
stands on the way to a slip is made as small as the schema allows.
"""

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]

TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
_KEY = "some-key"  # of a map
_FREE = ("fieldsV1",)  # anything may stand there, whatever the schema says
_DEEP = 12


class SlipType(StrEnum):
    """What is wrong."""

    TYPE = "wrong type"
    KEY = "wrong key"
    NULL = "null"
    LARGE = "too large"
    EMPTY = "empty list"


@dataclass(frozen=True, slots=True)
class Slip:
    """A GPUJob's spec with one slip.

    Attributes:
        name: of the GPUJob.
        kind: what is wrong.
        path: where, below ``spec``.
        spec: of the GPUJob.
        template: the pod template that has the slip; None where another field has it.
    """

    name: str
    kind: SlipType
    path: Path
    spec: Json
    template: Json | None

    @property
    def field(self) -> str:
        """The field, or of an entry the field whose it is."""
        steps = (step for step in reversed(self.path) if isinstance(step, str) and step != _KEY)
        return next(steps)

    @property
    def named(self) -> str:
        """The path as kubectl writes it."""
        said = "spec"
        for step in self.path:
            said += f"[{step}]" if isinstance(step, int) or step == _KEY else f".{step}"
        return said

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} at {self.named}"


class Schemas:
    """Schemas of one document, with what they refer to."""

    def __init__(self, named: Json) -> None:
        self._named = named

    def resolved(self, schema: Json) -> Json:
        while "$ref" in schema or len(schema.get("allOf", ())) == 1:
            inner = schema if "$ref" in schema else schema["allOf"][0]
            schema = self._named[inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        return schema

    def paths(self, schema: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
        """Every path below a schema, with the schema there."""
        schema = self.resolved(schema)
        if path:
            yield path, schema
        if len(path) == _DEEP or schema.get("x-kubernetes-preserve-unknown-fields"):
            return
        for name, below in schema.get("properties", {}).items():
            yield from self.paths(below, (*path, name))
        if "items" in schema:
            yield from self.paths(schema["items"], (*path, 0))
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self.paths(schema["additionalProperties"], (*path, _KEY))

    def smallest(self, schema: Json) -> Any:
        """A value that is right, as far as the schema says."""
        schema = self.resolved(schema)
        if schema.get("enum"):
            return schema["enum"][0]
        if "oneOf" in schema or schema.get("x-kubernetes-int-or-string"):
            return 1
        kind = schema.get("type")
        if kind == "object":
            needed = list(schema.get("required", ()))
            if "volumeMounts" in schema.get("properties", {}):  # a container
                needed.append("image")
            return {name: self.smallest(schema["properties"][name]) for name in needed}
        if kind == "array":
            return [self.smallest(schema["items"])] if schema.get("minItems") else []
        plain = {"string": "x", "integer": schema.get("minimum", 1), "number": 1, "boolean": True}
        return plain[kind] if kind in plain else {}

    def place(self, base: Json, schema: Json, path: Path, value: Any, *, key: str = "") -> Json:
        """``base`` with a value at a path; ``key``: in place of the path's last step."""
        made = here = deepcopy(base)
        schema = self.resolved(schema)
        for step in path[:-1]:
            below = self._below(schema, step)
            if isinstance(step, int):
                here.extend([self.smallest(below)] if not here else [])
            elif here.get(step) is None:
                here[step] = self.smallest(below)
            here, schema = here[step], self.resolved(below)  # type: ignore[index]
        last = path[-1]
        if isinstance(last, int):
            here[:1] = [value]  # type: ignore[index]
        else:
            if key:
                here.pop(last, None)
            here[key or last] = value
        return made

    def _below(self, schema: Json, step: str | int) -> Json:
        if isinstance(step, int):
            return schema["items"]
        return schema.get("properties", {}).get(step) or schema["additionalProperties"]


def _wrong(schema: Json, luck: random.Random) -> Any:
    """A value of another type."""
    kind = schema.get("type", "")
    if "oneOf" in schema or schema.get("x-kubernetes-int-or-string"):
        return luck.choice([True, [1], {"a": 1}])
    others = {
        "string": [10, 0.5, True, False, ["x"], {"a": "x"}],
        "integer": ["30", "x", 1.5, True, [1], {"a": 1}],
        "number": ["x", True, [1], {"a": 1}],
        "boolean": ["true", "yes", 1, [True], {"a": True}],
        "array": ["x", 5, True, {"a": "x"}],
        "object": ["x", 5, True, ["x"]],
    }
    return luck.choice(others.get(kind, [5]))


def _large(schema: Json, luck: random.Random) -> Any:
    if schema.get("type") == "integer":
        return luck.choice([2**31, 2**63, 10**20] if schema.get("format") == "int32" else [10**20])
    if "oneOf" in schema or schema.get("type") == "number":
        return luck.choice([10**20, "9" * 30])
    return _wrong(schema, luck)


def _misspelt(name: str, luck: random.Random) -> str:
    """As fingers do: without a capital, without the last letter, or with one more."""
    ways = [name.lower(), name[:-1], f"{name}s", name[0].upper() + name[1:], name + name[-1]]
    return luck.choice([way for way in ways if way not in (name, "")])


class Slips:
    """Makes them; the same seed makes the same."""

    def __init__(self, openapi: Json, crd: Json, seed: int) -> None:
        """``openapi``: that of the core group, ``crd``: that of GPUJobs."""
        self._pod = Schemas(openapi["components"]["schemas"])
        self._root = {"$ref": TEMPLATE}
        self._luck = random.Random(seed)
        self._own = Schemas({})
        version = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self._spec = version["properties"]["spec"]
        self._template_paths = list(self._pod.paths(self._root))
        self._own_paths = [
            each for each in self._own.paths(self._spec) if "template" not in each[0]
        ]

    def __len__(self) -> int:
        """How many paths there are."""
        return len(self._template_paths) + len(self._own_paths)

    def make(self, count: int) -> list[Slip]:
        """So many: two of three in a template; each path once before one has its second."""
        theirs = self._turns(self._template_paths)
        own = self._turns(self._own_paths)
        return [
            self._own_slip(f"slip-{index}", *next(own))
            if index % 3 == 2
            else self._template_slip(f"slip-{index}", *next(theirs))
            for index in range(count)
        ]

    def _turns(self, paths: list[tuple[Path, Json]]) -> Iterator[tuple[Path, Json]]:
        while True:
            yield from self._luck.sample(paths, len(paths))

    def _one(
        self, schemas: Schemas, root: Json, base: Json, path: Path, schema: Json
    ) -> tuple[SlipType, Path, Json]:
        kind = self._luck.choice(list(SlipType))
        last = path[-1]
        if kind is SlipType.KEY and isinstance(last, str) and last != _KEY:
            key = _misspelt(last, self._luck)
            made = schemas.place(base, root, path, schemas.smallest(schema), key=key)
            return kind, (*path[:-1], key), made
        if kind is SlipType.LARGE and not _has_size(schema):
            kind = SlipType.TYPE
        if kind is SlipType.EMPTY and schema.get("type") != "array":
            kind = SlipType.TYPE
        if kind is SlipType.KEY:
            kind = SlipType.TYPE
        free = path[-1] in _FREE or not (schema.get("type") or "oneOf" in schema)
        if kind is SlipType.TYPE and free:
            kind = SlipType.NULL  # anything may stand there
        value = {SlipType.NULL: None, SlipType.EMPTY: []}.get(kind)
        if kind in (SlipType.TYPE, SlipType.LARGE):
            value = (_wrong if kind is SlipType.TYPE else _large)(schema, self._luck)
        return kind, path, schemas.place(base, root, path, value)

    def _template_slip(self, name: str, path: Path, schema: Json) -> Slip:
        base = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
        kind, at, made = self._one(self._pod, self._root, base, path, schema)
        way = self._luck.choice(["job", "role", "sweep"])
        if way == "role":
            roles = [{"name": "lead", "image": "x", "gpu": 0.01}]
            spec = {"roles": [*roles, {"name": "work", "gpu": 0.01, "template": made}]}
            return Slip(name, kind, ("roles", 1, "template", *at), spec, made)
        spec = {"gpu": 0.01, "template": made}
        if way == "sweep":
            spec |= {"sweep": _SWEEP, "completions": 2}
        return Slip(name, kind, ("template", *at), spec, made)

    def _own_slip(self, name: str, path: Path, schema: Json) -> Slip:
        base: Json = {"image": "x", "gpu": 0.01}
        if path[0] == "roles":
            base = {"image": "x", "roles": [{"name": "lead", "gpu": 0.01}]}
        if path[0] == "sweep":
            base |= {"completions": 2, "sweep": _SWEEP}
        if path[0] == "checkpoint":
            base["checkpoint"] = {"volume": {"persistentVolumeClaim": {"claimName": "x"}}}
        kind, at, made = self._one(self._own, self._spec, base, path, schema)
        return Slip(name, kind, at, made, None)


def _has_size(schema: Json) -> bool:
    return schema.get("type") in ("integer", "number") or "oneOf" in schema


_SWEEP = {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}
