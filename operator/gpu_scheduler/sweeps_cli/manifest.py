"""A GPUJob with a sweep out of a YAML file, read as kubectl would read it.

kubectl takes ``1e-5`` for a number, as YAML 1.2 does, and Python's YAML library for a text; a
preview has to agree with the cluster. Judged by the rules that the operator applies.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.sweep import SweepSpec
from gpu_scheduler.api.validate import problems, read


class ManifestError(ValueError):
    """The file cannot be used; the message says why, a line for each problem."""


@dataclass(frozen=True, slots=True)
class Sweep:
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
    """Numbers as in YAML 1.2: neither a point nor a sign of the exponent is needed."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*)(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def load(path: Path) -> Sweep:
    """The first GPUJob with a sweep in a file.

    Raises:
        ManifestError: the file is not there, is no YAML, has no sweep, or a wrong one.
    """
    try:
        # The loader is a SafeLoader.
        documents = list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=_Loader))  # noqa: S506
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        raise ManifestError(f"{path} is no YAML: {error}") from None
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "GPUJob":
            if isinstance(document.get("spec"), dict) and document["spec"].get("sweep"):
                return parse(document, str(path))
    raise ManifestError(f"{path}: there is no GPUJob with spec.sweep in it")


def parse(document: Mapping[str, Any], source: str) -> Sweep:
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
    return Sweep(name, namespace, spec)
