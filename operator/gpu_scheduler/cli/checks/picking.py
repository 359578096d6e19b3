"""Pods that run and pick GPUs by hand: the policy on devices refuses the next ones.

The policy is the chart's (gpu-scheduler.cel.picking and silent). This names the namespaces of which
an owner has to decide whether they are exempt; before an upgrade to a chart that knows such, all in
which pods pick.
"""

import re
from collections.abc import Iterable

from gpu_scheduler.api.names import GROUP, LABEL_JOB, VISIBLE_DEVICES
from gpu_scheduler.api.unstructured import Body, labels_of, listed, name_of, part, text
from gpu_scheduler.cli.checks.facts import Check, CheckInputs, some, unread, warn
from gpu_scheduler.jobs.conflicts import PLUGIN_RESOURCES

_NO_GPU = ("", "none", "void")
_ALLOCATED = re.compile(rf"metadata\.annotations\['{re.escape(GROUP)}/c\d+-devices'\]")
_VALUE = "admission.devices.exemptNamespaces"


def picking(facts: CheckInputs) -> list[Check]:
    """Where pods pick GPUs that are not exempt from the policy."""
    name = "pods that pick GPUs"
    policies = [each for each in facts.validating or () if name_of(each).endswith("-devices")]
    if not policies:
        return []  # not wanted, or missing, which another check says
    if facts.pods is None:
        return unread(name, "the pods of all namespaces", "pods")
    exempt = [each for policy in policies for each in _exempt(policy)]
    found = {
        text(pod, "metadata", "namespace"): name_of(pod)
        for pod in facts.pods
        if _picks(pod, facts.runtime_class)
    }
    where = sorted(found.keys() - {*exempt, facts.namespace})
    if not where:
        return []
    pod = f"{where[0]}/{found[where[0]]}"
    said = (
        f"in {some(where)} (such as {pod}) pods set {VISIBLE_DEVICES} or leave it to their image: "
        f"new ones are refused, unless these namespaces are in {_VALUE}"
    )
    names = [each for each in exempt if each != facts.namespace]
    mend = facts.upgrade(f"'{_VALUE}={{{','.join([*names, *where])}}}'") if exempt else ""
    return [warn(name, said, mend)]


def _exempt(policy: Body) -> Iterable[str]:
    for rule in listed(policy, "spec", "matchConstraints", "namespaceSelector", "matchExpressions"):
        yield from map(str, listed(rule, "values"))


def _picks(pod: Body, runtime_class: str) -> bool:
    if LABEL_JOB in labels_of(pod):
        return False  # looked at by the allocations policy, in every version
    obeys = runtime_class != "" and text(pod, "spec", "runtimeClassName") == runtime_class
    containers = [*listed(pod, "spec", "containers"), *listed(pod, "spec", "initContainers")]
    return any(_container_picks(each, obeys=obeys) for each in containers)


def _container_picks(container: Body, *, obeys: bool) -> bool:
    told = [each for each in listed(container, "env") if text(each, "name") == VISIBLE_DEVICES]
    if not told:
        limits = part(container, "resources", "limits")
        served = any(PLUGIN_RESOURCES.fullmatch(key) for key in limits)
        return obeys and not served
    return any(_is_picked(each) for each in told)


def _is_picked(entry: Body) -> bool:
    if "valueFrom" not in entry:
        return text(entry, "value") not in _NO_GPU
    return not _ALLOCATED.fullmatch(text(entry, "valueFrom", "fieldRef", "fieldPath"))
