"""The custom resource definitions, generated from the models.

``python -m gpu_scheduler.api.crd [DIR]`` writes them, ``--check`` says which file of DIR is not
what the models give. They are committed under crds/ so that people and the chart need no Python.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpu_scheduler.api.gpuclass import GPUClassSpec, GPUClassStatus
from gpu_scheduler.api.gpujob import GPUJobSpec, GPUJobStatus
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.gpuproject import GPUProjectSpec, GPUProjectStatus
from gpu_scheduler.api.gpuusage import GPUUsageStatus
from gpu_scheduler.api.model import ApiModel, rules
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.rule import Rule
from gpu_scheduler.api.rules import GPU_JOB
from gpu_scheduler.api.schema import Schema, structural

HEADER = "# Generated from operator/gpu_scheduler/api by `make crds`; edit the models instead.\n"


@dataclass(frozen=True, slots=True)
class CustomResource:
    """A custom resource: its names, its models and what ``kubectl get`` prints."""

    kind: str
    short: str
    namespaced: bool
    description: str
    spec: type[ApiModel] | None
    status: type[ApiModel] | None
    columns: tuple[tuple[str, str], ...]  # name and JSON path; AGE is added
    rules: tuple[Rule, ...] = ()  # of the whole object

    @property
    def plural(self) -> str:
        """Plural name, as in URLs."""
        name = self.kind.lower()
        return name + ("es" if name.endswith("s") else "s")

    @property
    def file_name(self) -> str:
        """Name of its file under crds/."""
        return f"{GROUP}_{self.plural}.yaml"

    def definition(self) -> dict[str, Any]:
        """The CustomResourceDefinition."""
        kind, schema = self.kind.lower(), self._schema()
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": kind,
                    "shortNames": [self.short],
                    "categories": ["gpu-scheduler"],
                },
                "versions": [
                    {
                        "name": VERSION,
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}} if self.status is not None else {},
                        "additionalPrinterColumns": self._columns(schema),
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }

    def _columns(self, schema: Schema) -> list[dict[str, Any]]:
        columns: list[dict[str, Any]] = []
        for name, path in self.columns:
            shown = schema
            for part in _ENTRY.sub("", path).removeprefix(".").split("."):
                shown = shown.get("items", shown)["properties"][part]
            columns.append({"name": name, "type": shown["type"], "jsonPath": path})
        age = {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
        return [*columns, age]

    def _schema(self) -> Schema:
        properties: Schema = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        }
        if self.spec is not None:
            properties["spec"] = structural(self.spec, defaults=True)
        if self.status is not None:
            properties["status"] = structural(self.status, defaults=False)
        schema: Schema = {"description": self.description, "type": "object"}
        if self.spec is not None:
            schema["required"] = ["spec"]
        return schema | {"properties": properties} | (rules(*self.rules) if self.rules else {})


_ENTRY = re.compile(r"\[[^]]*\]")  # of a list: [0], [?(@.type=="Accepted")]
KINDS = (
    CustomResource(
        "GPUJob",
        "gj",
        True,
        "Pods that each need GPUs, or a share of one.",
        GPUJobSpec,
        GPUJobStatus,
        (
            ("PROJECT", ".status.project"),
            ("TYPE", ".spec.type"),
            ("STATUS", ".status.phase"),
            ("GPU(alloc/req)", ".status.gpu"),
            ("PODS(run/done/total)", ".status.podSummary"),
            ("BEST", ".status.sweep.best.value"),
            ("REASON", ".status.reason"),
            ("NODE", ".status.node"),
        ),
        GPU_JOB,
    ),
    CustomResource(
        "GPUProject",
        "gp",
        False,
        "The GPUs that the GPUJobs of some namespaces may hold.",
        GPUProjectSpec,
        GPUProjectStatus,
        (
            ("QUOTA", ".spec.quota"),
            ("LIMIT", ".spec.limit"),
            ("ALLOCATED", ".status.allocatedGPU"),
            ("BORROWED", ".status.borrowedGPU"),
            ("PENDING", ".status.pendingGPU"),
            ("ACCEPTED", '.status.conditions[?(@.type=="Accepted")].status'),
            ("PROBLEM", '.status.conditions[?(@.status=="False")].reason'),
        ),
    ),
    CustomResource(
        "GPUNode",
        "gn",
        False,
        "The GPUs of one node, written by the agent that runs there.",
        None,
        GPUNodeStatus,
        (
            ("MODEL", ".status.devices[0].model"),
            ("GPUS", ".status.gpus"),
            ("DRIVER", ".status.driverVersion"),
            ("ISOLATION", ".status.isolation"),
        ),
    ),
    CustomResource(
        "GPUClass",
        "gc",
        False,
        "A name for a kind of GPU, with its price and the shapes that GPUJobs may ask for.",
        GPUClassSpec,
        GPUClassStatus,
        (
            ("MATCH", ".spec.match"),
            ("COST/HOUR", ".spec.costPerHour"),
            ("GPUS", ".status.gpus"),
            ("NODES", ".status.nodes"),
            ("SHAPES", ".status.shapes"),
        ),
    ),
    CustomResource(
        "GPUUsage",
        "gu",
        True,
        "What the work in a namespace does with its GPUs, written by the operator.",
        None,
        GPUUsageStatus,
        (("GPUS", ".status.gpus"), ("OBSERVED", ".status.observedAt")),
    ),
)


class _Dumper(yaml.SafeDumper):
    """Writes for people: shared parts in full instead of anchors, tiny mappings on one line."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_dict(self, data: Mapping[str, object]) -> yaml.MappingNode:  # type: ignore[override]
        tiny = len(data) == 1 and not isinstance(next(iter(data.values())), dict | list)
        node = self.represent_mapping("tag:yaml.org,2002:map", data, flow_style=tiny)
        assert isinstance(node, yaml.MappingNode)
        return node


_Dumper.add_representer(dict, _Dumper.represent_dict)


def render(kind: CustomResource) -> str:
    """The file of one kind."""
    return HEADER + yaml.dump(
        kind.definition(), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
    )


def stale(folder: Path) -> list[Path]:
    """Files under ``folder`` that are not what the models give."""
    return [
        path
        for kind in KINDS
        if not (path := folder / kind.file_name).is_file()
        or path.read_text(encoding="utf-8") != render(kind)
    ]


def main(arguments: list[str]) -> int:
    """Write or check; the exit status is 1 when a check finds a stale file."""
    parser = argparse.ArgumentParser(prog="python -m gpu_scheduler.api.crd", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("crds"))
    options = parser.parse_args(arguments)
    if options.check:
        files = stale(options.folder)
        for path in files:
            sys.stderr.write(f"{path} is stale: run `make crds`\n")
        return 1 if files else 0
    options.folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (options.folder / kind.file_name).write_text(render(kind), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
