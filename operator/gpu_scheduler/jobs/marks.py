"""Labels and annotations: the user's are kept, everything under our prefix is ours alone.

A template that was copied from a running pod carries an old allocation; it must not reach the new
pods, where the state would read it as the ledger.
"""

import hashlib
from collections.abc import Mapping

from gpu_scheduler.api.names import GROUP, LABEL_JOB, LABEL_PROJECT, LABEL_ROLE

MAX_LABEL_CHARS = 63
_DIGEST_CHARS = 10
_OF_OTHERS = (f"{GROUP}/", "kueue.x-k8s.io/", "batch.kubernetes.io/")
_OF_JOBS = ("controller-uid", "job-name")
_OF_APPLICATIONS = "app.kubernetes.io/"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_OF_TOOLS = ("helm.sh", "argoproj.io", "fluxcd.io", "cattle.io")  # domains: they own what has these
_SELECTED = ("app", "k8s-app", "release", "chart", "heritage")  # as older charts call them


def label_value(name: str) -> str:
    """``name`` as a label value: itself up to 63 characters, else cut and made unique by a hash."""
    if len(name) <= MAX_LABEL_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: MAX_LABEL_CHARS - _DIGEST_CHARS - 1]}-{digest}"


def own_labels(job: str, project: str, role: str = "") -> dict[str, str]:
    """The labels that mark a Job and its pods as part of a GPUJob; ``role`` empty: of no role."""
    of_role = {LABEL_ROLE: role} if role else {}
    return {LABEL_JOB: label_value(job), LABEL_PROJECT: label_value(project)} | of_role


def for_jobs(theirs: object) -> dict[str, str]:
    """Labels of a template that its Job bears as well, for policies that want some on Jobs.

    Not those of who would take the Job for their own, such as Kueue.
    """
    kept = theirs if isinstance(theirs, dict) else {}
    return {k: v for k, v in kept.items() if not k.startswith(_OF_OTHERS) and k not in _OF_JOBS}


def inherited(theirs: object) -> dict[str, str]:
    """Labels of a GPUJob that its Jobs bear as well.

    Not those that say who manages that very object, and none that Kubernetes or a controller reads.
    """
    kept = for_jobs(theirs)
    return {k: v for k, v in kept.items() if k != _MANAGED_BY and not _is_reserved(k)}


def for_pods(inherited: Mapping[str, str]) -> dict[str, str]:
    """Those of them that its pods bear: none by which Services find the pods of an application.

    A chart puts the same ones on all its objects, and a job's pods would get its requests.
    """
    return {
        k: v
        for k, v in inherited.items()
        if not k.startswith(_OF_APPLICATIONS) and k not in _SELECTED
    }


def _is_reserved(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    of_kubernetes = domain.endswith(("kubernetes.io", "k8s.io"))
    return bool(slash) and (
        (of_kubernetes and f"{domain}/" != _OF_APPLICATIONS) or domain.endswith(_OF_TOOLS)
    )


def merged(theirs: object, ours: Mapping[str, str]) -> dict[str, str]:
    """The user's entries without any under our prefix, then ours.

    ``theirs`` comes unchecked from a template; what is not an object there counts as nothing.
    """
    kept = theirs if isinstance(theirs, dict) else {}
    return {k: v for k, v in kept.items() if not k.startswith(f"{GROUP}/")} | dict(ours)
