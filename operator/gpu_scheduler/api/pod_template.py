"""What the CRD says about a pod template: only what its rules must see.

The rest is kept unseen (preserve-unknown) and judged by the API server itself, whatever version it
has: a strict dry run of a Job, before anything is planned (ADR 0056). The keys of a pod and
a container are named nevertheless: the API server's CEL compares unnamed keys loosely (an unnamed
key that is swapped for another goes unnoticed), and named ones exactly.
"""

from typing import Any

from gpu_scheduler.api.model import rules
from gpu_scheduler.api.rules import RESTART_POLICY_RULE

_KEEP = {"x-kubernetes-preserve-unknown-fields": True}

_POD_KEYS = (
    "activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy "
    "enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers "
    "hostname imagePullSecrets nodeName nodeSelector os overhead "
    "preemptionPolicy priority priorityClassName readinessGates resourceClaims resources "
    "runtimeClassName schedulerName schedulingGates securityContext serviceAccount "
    "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain "
    "terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes"
).split()

_CONTAINER_KEYS = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe ports readinessProbe "
    "resizePolicy resources restartPolicy securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
).split()


def _object(known: dict[str, Any], keys: list[str], required: list[str]) -> dict[str, Any]:
    properties = known | dict.fromkeys(keys, _KEEP)
    return {"type": "object", "required": required, "properties": properties} | _KEEP


_CONTAINER = _object(
    {"name": {"type": "string", "minLength": 1, "maxLength": 63}}, _CONTAINER_KEYS, ["name"]
)
# Names and policies alone: whatever else is wrong with one, the API server says.
_INIT = _object(
    {
        "name": {"type": "string", "maxLength": 63},
        "restartPolicy": {"type": "string", "maxLength": 16},
    },
    [key for key in _CONTAINER_KEYS if key != "restartPolicy"],
    [],
)
_POD = _object(
    {
        "initContainers": {"type": "array", "maxItems": 64, "items": _INIT},
        "containers": {"type": "array", "minItems": 1, "maxItems": 64, "items": _CONTAINER},
        "restartPolicy": {"type": "string", "maxLength": 16} | rules(RESTART_POLICY_RULE),
    },
    _POD_KEYS,
    ["containers"],
)
_METADATA = {"type": "object", "properties": {"labels": _KEEP, "annotations": _KEEP}} | _KEEP

POD_TEMPLATE: dict[str, Any] = _object({"metadata": _METADATA, "spec": _POD}, [], ["spec"])

# Of a role, once more the whole would make the CRD too large for what it says: changes of it are
# judged less exactly, and what is wrong in it is found by ``validate``.
ROLE_TEMPLATE: dict[str, Any] = {"type": "object"} | _KEEP
