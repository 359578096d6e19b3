"""The line that gives the GPUs of a workload back. Pure."""

SCALED = ("Deployment", "StatefulSet", "ReplicaSet")
_SUSPENDED = ("Job", "CronJob")


def give_back(kind: str, namespace: str, name: str) -> str:
    """It keeps the workload, where that can be."""
    there = f"-n {namespace}"
    if kind == "GPUJob":
        return f"kubectl gpu suspend {there} {name}"
    if kind == "Gang":
        return f"kubectl delete pods {there} -l gpu-scheduler.io/gang={name}"
    word = f"{kind.lower()}/{name}"
    if kind in SCALED:
        return f"kubectl scale {there} {word} --replicas=0"
    if kind in _SUSPENDED:
        patch = '{"spec":{"suspend":true}}'
        return f"kubectl patch {there} {word} --type=merge -p '{patch}'"
    return f"kubectl delete {there} {word}"
