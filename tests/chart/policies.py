"""The chart's admission policies as helm renders them, and what each walks and costs."""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from tests.chart.cel_cost import FIELDS, Walker
from tests.chart.cel_syntax import Node, parse

from cluster import build

ROOT = Path(__file__).parents[2]
NAMESPACE = "gpu-scheduler"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:gpu-scheduler"
MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
SWITCHED_ON = ("holders.enabled=true", "sweeps.readLogs=true")

# Of lists that something else bounds, and of texts whose pieces a rule before has asked for.
KNOWN = {
    # a word of `asked` is at least `a=,`: gpu-scheduler.cel.ruleReadable
    "object.metadata.annotations[]/split[]/split[]/split": 600,
    # as many keys as the first, and so many in all: the rule's own condition
    "object.spec.sweep.trials[]": 25_000,
    # what the API server finds valid before a policy sees it: DeviceRequestsMaxSize and
    # FirstAvailableDeviceRequestMaxSize of k8s.io/api/resource/v1
    **{
        f"object.spec.{of}devices.requests{inside}": most
        for of in ("", "spec.")
        for inside, most in (("", 32), ("[].firstAvailable", 8))
    },
}


@dataclass(frozen=True, slots=True)
class Policy:
    """An admission policy.

    Attributes:
        name: without the release's.
        spec: its spec.
        variables: what its expressions know by name.
        conditions: expressions that decide whether it says anything.
        rest: variables and all other expressions, by where they stand.
    """

    name: str
    spec: Mapping[str, Any]
    variables: Mapping[str, Node]
    conditions: Mapping[str, Node]
    rest: Mapping[str, Node]

    @property
    def expressions(self) -> Mapping[str, Node]:
        """All of them."""
        return {**self.conditions, **self.rest}

    @property
    def fails_open(self) -> bool:
        return bool(self.spec["failurePolicy"] == "Ignore")

    def requests(self) -> Iterator[dict[str, str]]:
        """What is known of the requests that it sees: one for each kind of them."""
        for rule in self.spec["matchConstraints"]["resourceRules"]:
            users = ("a tenant", OPERATOR)
            for operation, resource, user in product(rule["operations"], rule["resources"], users):
                kind, _, sub = resource.partition("/")
                if operation == "CREATE" and sub not in {"", "binding"}:
                    continue  # nothing is created there
                yield {
                    "request.operation": operation,
                    "request.resource.resource": kind,
                    "request.subResource": sub,
                    "request.userInfo.username": user,
                }

    def schema_bounds(self) -> Mapping[str, int]:
        """How long lists may be by the CRDs of what the policy reads."""
        rules = self.spec["matchConstraints"]["resourceRules"]
        kinds = {resource for rule in rules for resource in rule["resources"]}
        found = dict(_schema_bounds("params", "gpuprojects"))
        for root in ("object", "oldObject") if kinds == {"gpujobs"} else ():
            found |= _schema_bounds(root, "gpujobs")
        return found


@cache
def policies() -> Mapping[str, Policy]:
    """All that the chart makes with everything switched on, by name."""
    values = [part for value in SWITCHED_ON for part in ("--set", value)]
    chart = str(ROOT / "charts" / "gpu-scheduler")
    command = [build.binary("helm"), "template", "gpu-scheduler", chart, "-n", NAMESPACE, *values]
    done = subprocess.run(
        [*command, "--api-versions", MUTATING], capture_output=True, text=True, check=True
    )
    documents = [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]
    found = [each for each in documents if each["kind"].endswith("AdmissionPolicy")]
    return {policy.name: policy for policy in map(_policy, found)}


def _policy(document: Mapping[str, Any]) -> Policy:
    spec = document["spec"]
    variables = {each["name"]: parse(each["expression"]) for each in spec.get("variables", ())}
    rest = {f"variable {name}": node for name, node in variables.items()}
    for number, rule in enumerate(spec.get("validations", ())):
        keys = rule.keys() & {"expression", "messageExpression"}
        rest |= {f"{key} {number}": parse(rule[key]) for key in sorted(keys)}
    for number, mutation in enumerate(spec.get("mutations", ())):
        (way,) = mutation.keys() - {"patchType"}
        rest[f"mutation {number}"] = parse(mutation[way]["expression"])
    return Policy(
        document["metadata"]["name"].removeprefix("gpu-scheduler-"),
        spec,
        variables,
        {each["name"]: parse(each["expression"]) for each in spec.get("matchConditions", ())},
        rest,
    )


@cache
def _schema_bounds(root: str, kind: str) -> Mapping[str, int]:
    (path,) = (ROOT / "crds").glob(f"*{kind}*.yaml")
    crd = yaml.load(path.read_text(), yaml.CSafeLoader)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return _bounds(f"{root}.spec", schema["properties"]["spec"])


def _bounds(path: str, schema: Mapping[str, Any]) -> dict[str, int]:
    most = schema.get("maxItems", schema.get("maxProperties"))
    found = {} if most is None else {path: int(most)}
    for name, field in schema.get("properties", {}).items():
        found |= _bounds(f"{path}.{name}", field)
    for inside in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inside, dict) and found.keys() & {path}:
            found |= _bounds(f"{path}[]", inside)
    return found


@cache
def walkers(name: str) -> tuple[Walker, ...]:
    """One for each kind of request: what it walks, and the bounds that the policy sets."""
    policy = policies()[name]
    return tuple(_walker(policy, facts) for facts in policy.requests())


def _walker(policy: Policy, facts: Mapping[str, str]) -> Walker:
    walker = Walker({**policy.schema_bounds(), **KNOWN}, dict(policy.variables), facts)
    for _ in range(2):  # what is bounded after it is walked is known the second time
        walker.walked.clear()
        for expression in policy.expressions.values():
            walker.cost_of(expression)
    return walker


@cache
def walks(name: str) -> frozenset[str]:
    """Lists that it walks, and that requests can make longer than any bound but its own."""
    policy = policies()[name]
    walked = {path for walker in walkers(name) for path in walker.walked}
    return frozenset(
        path
        for path in walked - policy.schema_bounds().keys() - KNOWN.keys()
        if "/" not in path and path.rpartition(".")[2] not in FIELDS
    )


@cache
def bound(name: str, path: str) -> int:
    """The least that the policy says of a list."""
    return min(walker.least[path] for walker in walkers(name) if path in walker.least)
