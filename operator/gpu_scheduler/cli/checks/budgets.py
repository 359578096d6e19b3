"""GPUProjects that cannot be used, and ResourceQuotas that count GPUs otherwise than is thought."""

from gpu_scheduler.api.names import RESOURCE_MIB, RESOURCE_MILLI
from gpu_scheduler.api.unstructured import listed, name_of, part
from gpu_scheduler.cli.checks.facts import Check, CheckInputs, missing, ok, some, unread, warn

_CREATE = "kubectl gpu project create team-a --quota 1 --namespace team-a"


def projects(facts: CheckInputs) -> list[Check]:
    """Whether there is a project, and whether each can be used."""
    if facts.projects is None:
        return unread("projects", "GPUProjects", "gpuprojects.gpu-scheduler.io")
    if not facts.projects:
        said = "there is none, so no namespace may use GPUs"
        return [missing("projects", said, _CREATE)]
    findings, owners = [], dict[str, list[str]]()
    for body in facts.projects:
        name = name_of(body)
        for each in listed(body, "status", "conditions"):
            if not isinstance(each, dict):
                continue
            kind, status = each.get("type"), each.get("status")
            said = str(each.get("message") or each.get("reason") or "")
            edit = f"kubectl edit gpuproject {name}"
            if (kind, status) == ("Accepted", "False"):
                said = f"cannot be used: {said}"
                findings.append(missing(f"project {name}", said, edit))
            elif (kind, status) in (("QuotaCovered", "False"), ("SetAside", "True")):
                findings.append(warn(f"project {name}", said, edit))
        for namespace in listed(body, "spec", "namespaces"):
            owners.setdefault(str(namespace), []).append(name)
    for namespace, names in owners.items():
        if len(names) > 1:
            said = f"namespace {namespace} is in {len(names)} projects: {some(names)}"
            mend = f"kubectl edit gpuproject {names[-1]}"
            findings.append(missing("projects", said, mend))
    if facts.namespaces is not None:
        there = {name_of(each) for each in facts.namespaces}
        if gone := sorted(owners.keys() - there):
            said = f"namespaces that do not exist: {some(gone)}"
            mend = f"kubectl create namespace {gone[0]}"
            findings.append(warn("projects", said, mend))
    if findings:
        return findings
    count = len(facts.projects)
    said = f"{count} project{'s' * (count != 1)}, {len(owners)} namespace{'s' * (len(owners) != 1)}"
    return [ok("projects", said)]


def quotas(facts: CheckInputs) -> list[Check]:
    """ResourceQuotas that speak of GPUs."""
    if facts.quotas is None:
        return unread("ResourceQuotas", "ResourceQuotas", "resourcequotas")
    findings = []
    mine = {name for body in facts.projects or () for name in listed(body, "spec", "namespaces")}
    for body in facts.quotas:
        namespace = str(part(body, "metadata").get("namespace", ""))
        where = f"{namespace}/{name_of(body)}"
        keys = [str(key) for key in part(body, "spec", "hard")]
        if any("nvidia.com/" in key for key in keys) and namespace in mine:
            said = f"{where} counts nvidia.com/gpu, which GPUJobs and shares do not request"
            mend = "kubectl gpu projects"
            findings.append(warn("ResourceQuota", said, mend))
        if any(RESOURCE_MILLI in key or RESOURCE_MIB in key for key in keys):
            said = f"{where} counts only pods that ask by limits; a project counts all"
            findings.append(ok("ResourceQuota", said))
    return findings or [ok("ResourceQuotas", "none speaks of GPUs")]
