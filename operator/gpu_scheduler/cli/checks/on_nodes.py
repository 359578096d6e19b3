"""Agents, what they report, the labels that they are started by, and RuntimeClasses."""

import json
from collections.abc import Iterator, Sequence

from gpu_scheduler.api.names import AGENT_LEASE_PREFIX
from gpu_scheduler.api.unstructured import Body, labels_of, listed, name_of, part, text
from gpu_scheduler.cli.checks.facts import (
    COUNT,
    PRESENT,
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
    unread,
    warn,
)

_LABEL = f"kubectl label node NODE {PRESENT}=true"
_PRETENDED = "kwok.x-k8s.io/node"
"""The annotation of nodes that kwok plays: no program runs there."""
_OF_KUBERNETES = "node.kubernetes.io/"
"""Begins taints that Kubernetes sets and lifts, and agents tolerate."""


def gpu_nodes(facts: CheckInputs) -> list[Body]:
    """Nodes that have a GPU, as far as anything of them says so."""
    known = {name_of(each) for each in facts.gpunodes or () if listed(each, "status", "devices")}
    return [node for node in facts.nodes or () if _has_gpu(node) or name_of(node) in known]


def labels(facts: CheckInputs) -> list[Check]:
    """Whether nodes with GPUs are known as such, and bear what the agent is started by."""
    if facts.nodes is None:
        return unread("node labels", "Nodes", "nodes")
    there = gpu_nodes(facts)
    if not there:
        said = f"no node is known to have a GPU: none has {PRESENT} or {COUNT}"
        return [missing("node labels", said, _LABEL)]
    selector = _selector(facts)
    if facts.agent is None:
        lack = [name_of(n) for n in there if number_of(labels_of(n).get(COUNT)) == 0]
        if lack:
            said = f"{some(lack)}: no agent, and no label {COUNT}, so no GPU is known there"
            mend = facts.upgrade("agent.enabled=true")
            return [missing("node labels", said, mend)]
        return [ok("node labels", f"{_nodes(there)} say what GPUs they have")]
    lack = [
        name_of(node)
        for node in there
        if any(labels_of(node).get(key) != value for key, value in selector.items())
    ]
    if lack:
        wanted = " ".join(f"{key}={value}" for key, value in selector.items())
        said = f"{some(lack)}: no agent starts there, as the label is missing: {wanted}"
        return [warn("node labels", said, f"kubectl label node {' '.join(lack)} {wanted}")]
    return [ok("node labels", f"{_nodes(there)} with GPUs, all with the agent's label")]


def agent(facts: CheckInputs) -> list[Check]:
    """Whether an agent runs on each node with a GPU."""
    if facts.daemonsets is None:
        return unread("agent", "DaemonSets", "daemonsets.apps")
    found = facts.agent
    if found is None:
        said = "there is none: GPUs come from node labels, and nobody notices memory above a cap"
        return [warn("agent", said, facts.upgrade("agent.enabled=true"))]
    status = part(found, "status")
    ready, wanted = (number(status.get(k)) for k in ("numberReady", "desiredNumberScheduled"))
    where = facts.namespace_of(found)
    said = f"{ready} of {wanted} ready: {where}/{name_of(found)}"
    if not wanted:
        return [warn("agent", f"no node has its label: {where}/{name_of(found)}")]
    if ready >= wanted:
        return [ok("agent", said)]
    mend = describe_pods(where, found)
    return [Check(CheckState.WARN if ready else CheckState.MISSING, "agent", said, mend)]


def reports(facts: CheckInputs) -> list[Check]:
    """Whether each agent has reported its GPUs, and goes on renewing its Lease."""
    if facts.agent is None:
        return []
    if facts.gpunodes is None or facts.nodes is None:
        return unread("reports", "GPUNodes and Nodes", "gpunodes.gpu-scheduler.io")
    have = {name_of(each): each for each in facts.gpunodes}
    nodes = gpu_nodes(facts)
    findings, without = _without_agents(facts, [n for n in nodes if name_of(n) not in have])
    names = [name_of(node) for node in nodes if name_of(node) not in without]
    where = facts.namespace_of(facts.agent)
    logs = f"kubectl -n {where} logs daemonset/{name_of(facts.agent)}"
    if none := [name for name in names if name not in have]:
        said = f"no GPUNode: {some(none)}; their agents have not reported"
        findings.append(missing("reports", said, logs))
    if empty := [n for n in names if n in have and not listed(have[n], "status", "devices")]:
        said = f"agents find no GPU: {some(empty)}; the driver is not loaded, or not mounted"
        findings.append(missing("driver", said, logs))
    leases = {name_of(each): each for each in facts.leases or ()}
    silent = []
    for name in names:
        lease = leases.get(f"{AGENT_LEASE_PREFIX}{name}")
        if name not in have or facts.leases is None:
            continue
        age = age_seconds(facts, lease) if lease is not None else None
        if age is None or age > held_seconds(lease or {}):
            silent.append(name if age is None else f"{name} ({age:.0f} s)")
    if silent:
        said = f"silent, so these take no new pods: {some(silent)}"
        findings.append(warn("reports", said, logs))
    ill = [
        f"{name}/{device.get('index')}"
        for name in names
        for device in listed(have.get(name, {}), "status", "devices")
        if isinstance(device, dict) and not device.get("healthy", True)
    ]
    if ill:
        said = f"GPUs that are not healthy: {some(ill)}"
        findings.append(warn("GPUs", said, "kubectl gpu top gpus"))
    findings += _self_tests(facts, [have[name] for name in names if name in have])
    if any(each.state is not CheckState.OK for each in findings):
        return findings
    drivers = {str(part(each, "status").get("driverVersion") or "") for each in have.values()}
    said = f"{len(names)} of {len(names)} agents report"
    if known := sorted(drivers - {""}):
        said += f"; driver {some(known)}"
    return [*findings, ok("reports", said)] if names else findings


def _self_tests(facts: CheckInputs, there: Sequence[Body]) -> Iterator[Check]:
    """Levels of isolation that did not hold, with what the tests saw."""
    from gpu_scheduler.state.nodes.agents import failed_isolation

    failed: dict[str, list[Body]] = {}
    for body in there:
        for level in failed_isolation(part(body, "status")):
            failed.setdefault(level, []).append(body)
    for level, bodies in failed.items():
        saw = [f"{name_of(each)} ({text(part(each, 'status'), 'selfTest')})" for each in bodies]
        said = (
            f"the self-test of isolation: {level} failed on {len(bodies)} of {_nodes(there)}, so "
            f"no pod that shares a GPU behind it is placed there: {some(saw)}"
        )
        yield warn("self-test", said, _again(facts, name_of(bodies[0])))


def _again(facts: CheckInputs, node: str) -> str:
    """The command by which a node tests itself anew, once the cause is mended."""
    labels = part(facts.agent or {}, "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    where = f"-n {facts.namespace_of(facts.agent or {})} delete pods -l {selector}"
    return f"kubectl {where} --field-selector spec.nodeName={node}"


def _without_agents(facts: CheckInputs, nodes: Sequence[Body]) -> tuple[list[Check], set[str]]:
    """Of nodes that no agent reports, those where none can run, and what is to be expected there.

    Their GPUs are those that labels tell; where labels tell none, an agent is missing.
    """
    from gpu_scheduler.state.nodes.devices import from_labels

    listed_there = [node for node in nodes if from_labels(labels_of(node))]
    pretended = [n for n in listed_there if _PRETENDED in part(n, "metadata", "annotations")]
    findings = []
    if names := [name_of(node) for node in pretended]:
        said = f"{some(names)}: played by kwok, so no agent runs; their GPUs are those of labels"
        findings.append(ok("reports", said))
    kept: dict[tuple[str, str, str], list[str]] = {}
    for node in listed_there:
        taint = _untolerated(facts, node)
        if taint is not None and name_of(node) not in names:
            kept.setdefault(taint, []).append(name_of(node))
    for taint, there in kept.items():
        key, value, effect = taint
        said = (
            f"{some(there)}: the taint {key}{value and f'={value}'}:{effect} keeps agents away; "
            "their GPUs are those of labels, and nobody notices memory above a cap"
        )
        findings.append(warn("reports", said, _tolerate(facts, key)))
    return findings, {*names, *(name for there in kept.values() for name in there)}


def _untolerated(facts: CheckInputs, node: Body) -> tuple[str, str, str] | None:
    """Key, value and effect of the first taint that keeps the agent off a node."""
    from gpu_scheduler.core.model.cluster import Taint
    from gpu_scheduler.core.model.fit import tolerates
    from gpu_scheduler.core.model.request import Toleration

    tolerations = [
        Toleration(*(text(each, name) for name in ("key", "operator", "value", "effect")))
        for each in _tolerations(facts)
    ]
    for body in listed(node, "spec", "taints"):
        key, value, effect = (text(body, name) for name in ("key", "value", "effect"))
        if effect not in ("NoSchedule", "NoExecute") or key.startswith(_OF_KUBERNETES):
            continue
        if not any(tolerates(each, Taint(key, value, effect)) for each in tolerations):
            return key, value, effect
    return None


def _tolerations(facts: CheckInputs) -> list[Body]:
    found = listed(facts.agent or {}, "spec", "template", "spec", "tolerations")
    return [each for each in found if isinstance(each, dict)]


def _tolerate(facts: CheckInputs, key: str) -> str:
    """The command that lets agents onto nodes with a taint."""
    tolerations = [*_tolerations(facts), {"key": key, "operator": "Exists"}]
    return f"{facts.upgrade()} --set-json 'agent.tolerations={json.dumps(tolerations)}'"


def runtime_class(facts: CheckInputs) -> list[Check]:
    """Whether the RuntimeClasses that the chart names are there."""
    agents = str(part(facts.agent or {}, "spec", "template", "spec").get("runtimeClassName") or "")
    wanted = list(dict.fromkeys(name for name in (facts.runtime_class, agents) if name))
    if not wanted:
        return [ok("RuntimeClass", "none is asked for")]
    if facts.runtime_classes is None:
        return unread("RuntimeClass", "RuntimeClasses", "runtimeclasses.node.k8s.io")
    there = {name_of(each) for each in facts.runtime_classes}
    findings = []
    for name in wanted:
        if name in there:
            findings.append(ok("RuntimeClass", f"{name} is there"))
            continue
        body = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": name,
        }
        mend = f"echo '{json.dumps(body)}' | kubectl apply -f -"
        if name == agents:
            said = f"{name} is missing, so no agent can start"
            findings.append(missing("RuntimeClass", said, mend))
        else:
            said = (
                f"{name} is missing: pods get none, so NVIDIA's runtime must be the nodes' default"
            )
            findings.append(warn("RuntimeClass", said, mend))
    return findings


def number_of(text: str | None) -> int:
    """A label as a number; 0 where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else 0


def _has_gpu(node: Body) -> bool:
    labels = labels_of(node)
    if labels.get(PRESENT) == "true" or number_of(labels.get(COUNT)):
        return True
    amount = part(node, "status", "capacity").get("nvidia.com/gpu")
    return amount is not None and number_of(str(amount)) > 0


def _selector(facts: CheckInputs) -> dict[str, str]:
    found = part(facts.agent or {}, "spec", "template", "spec", "nodeSelector")
    return {str(key): str(value) for key, value in found.items()}


def _nodes(nodes: Sequence[Body]) -> str:
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)}"
