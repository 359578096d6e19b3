"""The CRDs, the operator, its leader, and versions that do not fit each other."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from gpu_scheduler.api.names import GROUP, LEASE, VERSION
from gpu_scheduler.api.unstructured import Body, labels_of, listed, name_of, part
from gpu_scheduler.cli.checks.facts import (
    VERSION_LABEL,
    Check,
    CheckInputs,
    CheckState,
    age_seconds,
    describe_pods,
    held_seconds,
    missing,
    number,
    ok,
    some,
    unknown,
    unread,
    warn,
)

if TYPE_CHECKING:
    from gpu_scheduler.api.crd import CustomResource

_INSTALL = "helm install gpu-scheduler charts/gpu-scheduler -n {} --create-namespace"
_APPLY = "kubectl apply --server-side --force-conflicts -f crds/"


def crds(facts: CheckInputs) -> list[Check]:
    """Whether our kinds are there, served, and those of this program."""
    from gpu_scheduler.api.crd import KINDS

    wanted = {kind.plural: kind for kind in KINDS}
    if facts.crds is None:
        if facts.kinds is None:
            return [missing("CRDs", f"the server has nothing of {GROUP}", _APPLY)]
        if gone := sorted(wanted.keys() - facts.kinds):
            return [missing("CRDs", f"not served: {some(gone)}", _APPLY)]
        said = f"{len(wanted)} kinds are served; you may not read the CRDs, so not how new they are"
        return [unknown("CRDs", said)]
    there = {name_of(crd).partition(".")[0]: crd for crd in facts.crds}
    findings = []
    if gone := sorted(wanted.keys() - there.keys()):
        findings.append(missing("CRDs", f"not installed: {some(gone)}", _APPLY))
    for plural in sorted(wanted.keys() & there.keys()):
        name, kind = f"CRD {plural}", wanted[plural]
        versions = [v for v in listed(there[plural], "spec", "versions") if isinstance(v, dict)]
        ours = next((v for v in versions if v.get("name") == VERSION and v.get("served")), None)
        if ours is None:
            findings.append(missing(name, f"{VERSION} is not served", _APPLY))
            continue
        theirs = set(_fields(part(ours, "schema", "openAPIV3Schema")))
        mine = _known(kind)
        if lacks := sorted(mine - theirs):
            said = f"is older than this program: it lacks {some(lacks)}"
            findings.append(warn(name, said, _APPLY))
        elif more := sorted(theirs - mine):
            said = f"is newer than this program: it has {some(more)}; upgrade this program"
            findings.append(warn(name, said))
    if not findings:
        said = f"{len(wanted)} kinds, {VERSION} served, fields as this program knows them"
        return [ok("CRDs", said)]
    return findings


def operator(facts: CheckInputs) -> list[Check]:
    """Whether the operator's Deployment is there and ready."""
    if facts.deployments is None:
        return unread("operator", "Deployments", "deployments.apps")
    found = facts.operator
    if found is None:
        if _leads(facts):
            said = "runs outside of the chart: a leader is there, and no Deployment of the chart"
            return [warn("operator", said)]
        return [
            missing(
                "operator", "there is no Deployment of the chart", _INSTALL.format(facts.namespace)
            )
        ]
    wanted = number(part(found, "spec").get("replicas", 1))
    ready = number(part(found, "status").get("readyReplicas"))
    where = facts.namespace_of(found)
    said = f"{ready} of {wanted} replicas ready: {where}/{name_of(found)}"
    if wanted and ready >= wanted:
        return [ok("operator", said)]
    mend = describe_pods(where, found)
    if not wanted:
        mend = f"kubectl -n {where} scale deployment {name_of(found)} --replicas=2"
    return [Check(CheckState.WARN if ready else CheckState.MISSING, "operator", said, mend)]


def leader(facts: CheckInputs) -> list[Check]:
    """Whether somebody leads: without, nothing is placed."""
    if facts.leases is None:
        return unread("leader", f"Leases in {facts.namespace}", "leases.coordination.k8s.io")
    where = facts.namespace
    found = facts.operator
    logs = f"kubectl -n {where} logs deployment/{name_of(found)}" if found else ""
    lease = next((each for each in facts.leases if name_of(each) == LEASE), None)
    if lease is None:
        return [missing("leader", f"nobody has ever led in {where}", logs)]
    holder = str(part(lease, "spec").get("holderIdentity") or "")
    age = age_seconds(facts, lease)
    if not holder or age is None:
        return [missing("leader", "nobody leads: the Lease was given back", logs)]
    if age > held_seconds(lease):
        said = f"{holder} has not renewed its Lease for {age:.0f} s: nobody leads"
        return [missing("leader", said, logs)]
    return [ok("leader", f"{holder}, renewed {age:.0f} s ago")]


def versions(facts: CheckInputs) -> list[Check]:
    """Whether program, operator, agent and CRDs are of one version."""
    found = {"this program": facts.version}
    for what, body in (("operator", facts.operator), ("agent", facts.agent)):
        if body is not None and (version := _version(body)):
            found[what] = version
    for crd in facts.crds or ():
        if label := labels_of(crd).get(VERSION_LABEL):
            found.setdefault("CRDs", label)
    if len(found) == 1:
        said = f"this program is {facts.version}; nothing in the cluster says its own"
        return [unknown("versions", said)]
    text = ", ".join(f"{what} {version}" for what, version in found.items())
    if len(set(found.values())) == 1:
        return [ok("versions", f"all {facts.version}: {', '.join(found)}")]
    inside = {version for what, version in found.items() if what != "this program"}
    mend = facts.upgrade() if len(inside) > 1 else ""
    said = f"differ: {text}" + ("" if mend else "; take the program of the operator's version")
    return [warn("versions", said, mend)]


def _leads(facts: CheckInputs) -> bool:
    return any(
        name_of(each) == LEASE
        and (age := age_seconds(facts, each)) is not None
        and age <= held_seconds(each)
        for each in facts.leases or ()
    )


def _version(body: Body) -> str:
    """Of the image, where its tag is a version; else what the chart says."""
    containers = listed(body, "spec", "template", "spec", "containers")
    image = str(containers[0].get("image", "")) if containers else ""
    tag = image.rpartition(":")[2].removesuffix("-tpe") if ":" in image.rpartition("/")[2] else ""
    if "@" not in image and tag[:1].isdigit():
        return tag
    return labels_of(body).get(VERSION_LABEL, "")


@cache
def _known(kind: "CustomResource") -> frozenset[str]:
    """Paths of the fields that this program knows."""
    version = listed(kind.definition(), "spec", "versions")[0]
    return frozenset(_fields(part(version, "schema", "openAPIV3Schema")))


def _fields(schema: Any, path: str = "") -> Iterator[str]:
    """Paths of all fields below a schema."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for name, below in properties.items() if isinstance(properties, dict) else ():
        if path or name in ("spec", "status"):
            here = f"{path}.{name}" if path else name
            yield here
            yield from _fields(below, here)
    yield from _fields(schema.get("items"), f"{path}[]") if "items" in schema else ()
    more = schema.get("additionalProperties")
    yield from _fields(more, f"{path}{{}}") if isinstance(more, dict) else ()
