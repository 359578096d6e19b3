"""A GPUJob with a sweep out of a YAML file, read as kubectl would read it.

kubectl takes ``1e-5`` for a number, ``y`` for true and a date for a text, Python's YAML library
does not; a preview has to agree with the cluster. Judged by the rules that the operator applies.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.sweep import SweepSpec
from gpu_scheduler.api.validate import problems, read

_BOOL, _INT, _FLOAT, _TIME = (
    f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp")
)
_OTHERWISE = (_BOOL, _INT, _FLOAT, _TIME)


class ManifestError(ValueError):
    """The file cannot be used; the message says why, a line for each problem."""


@dataclass(frozen=True, slots=True)
class SweepManifest:
    """A GPUJob that has a sweep."""

    name: str
    namespace: str  # empty = that of the kubeconfig
    spec: GPUJobSpec

    @property
    def sweep(self) -> SweepSpec:
        """The search."""
        assert self.spec.sweep is not None, "checked when it was read"
        return self.spec.sweep


class _Loader(yaml.SafeLoader):
    """What a plain word means, as kubectl takes it: ``y`` is true, ``1:30`` is a text."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag not in _OTHERWISE]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """With keys as JSON has them."""
        found = super().construct_mapping(node, deep=deep)
        return {str(k).lower() if isinstance(k, bool) else k: v for k, v in found.items()}

    def boolean(self, node: yaml.ScalarNode) -> bool:
        """One of the words of ``_BOOL``."""
        return node.value.lower() in ("y", "yes", "true", "on")

    def integer(self, node: yaml.ScalarNode) -> int:
        """Binary, octal, hexadecimal or decimal."""
        text = node.value.replace("_", "")
        octal = re.fullmatch(r"([-+]?)0o?([0-7]+)", text)
        return int(octal[1] + octal[2], 8) if octal else int(text, 0)

    def number(self, node: yaml.ScalarNode) -> float:
        """A double; NaN, which no field takes, for what is closer to 0 than any but 0 itself.

        kubectl would make it 0, and nobody could see that any more.
        """
        value = float(self.construct_yaml_float(node))
        mantissa = re.split("[eE]", node.value)[0]
        return math.nan if value == 0 and re.search("[1-9]", mantissa) else value


for _tag, _pattern, _first, _construct in (
    (_BOOL, r"[yY]|yes|Yes|YES|true|True|TRUE|on|On|ON", "yYtToO", _Loader.boolean),
    (_BOOL, r"[nN]|no|No|NO|false|False|FALSE|off|Off|OFF", "nNfFoO", _Loader.boolean),
    (
        _INT,
        r"[-+]?(?:0|[1-9][0-9_]*|0o?[0-7_]+|0b[01_]+|0x[0-9a-fA-F_]+)",
        "-+0123456789",
        _Loader.integer,
    ),
    (
        _FLOAT,
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
        _Loader.number,
    ),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})$"), list(_first))
    _Loader.add_constructor(_tag, _construct)


def documents(text: str, source: str) -> list[Any]:
    """All documents of a file, as kubectl would read them.

    Raises:
        ManifestError: it is no YAML.
    """
    try:
        # The loader is a SafeLoader.
        return list(yaml.load_all(text, Loader=_Loader))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A value error: a character, or a number, that YAML allows and Python cannot take.
        raise ManifestError(f"{source} is no YAML: {error}") from None


def load(path: Path) -> SweepManifest:
    """The first GPUJob with a sweep in a file.

    Raises:
        ManifestError: the file is not there, is no YAML, has no sweep, or a wrong one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from None
    for document in documents(text, str(path)):
        if isinstance(document, dict) and document.get("kind") == "GPUJob":
            if isinstance(document.get("spec"), dict) and document["spec"].get("sweep"):
                return parse(document, str(path))
    raise ManifestError(f"{path}: there is no GPUJob with spec.sweep in it")


def parse(document: Mapping[str, Any], source: str) -> SweepManifest:
    """A GPUJob as an object.

    Raises:
        ManifestError: it has no sweep, or something is wrong with it.
    """
    metadata = document.get("metadata")
    meta: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "")
    spec = read(GPUJobSpec, document.get("spec") or {})
    found = spec if isinstance(spec, tuple) else problems(name, namespace, spec)
    if found:
        raise ManifestError("\n".join([f"{source}:", *(f"  {problem}" for problem in found)]))
    assert not isinstance(spec, tuple)
    if spec.sweep is None:
        raise ManifestError(f"{source} has no spec.sweep")
    return SweepManifest(name, namespace, spec)
