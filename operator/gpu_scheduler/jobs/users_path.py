"""Where a user wrote what a pod template of a GPUJob, or of one of its roles, says. Pure."""

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.problem import Problem

_ONLY_CONTAINER = "spec.containers[0]."  # of a GPUJob without a template


def source(spec: GPUJobSpec, role: str) -> str:
    """Path of the field that says what the pods of a role are."""
    for index, each in enumerate(spec.roles or ()):
        if each.name == role and each.template is not None:
            return f"spec.roles[{index}].template"
        if each.name == role and spec.template is None:
            return f"spec.roles[{index}]"
    return "spec" if spec.template is None else "spec.template"


def users_words(spec: GPUJobSpec, role: str, problem: Problem) -> str:
    """What is wrong in the template of a role, under the path by which its author knows it."""
    where, field = source(spec, role), problem.field
    if where.endswith("template"):
        at = f"{where}.{field}"
    elif where == "spec" and field.startswith(_ONLY_CONTAINER):
        at = f"spec.{field.removeprefix(_ONLY_CONTAINER)}"
    elif field in ("", "spec"):
        at = where
    else:
        at = f"{where} ({field.removeprefix('spec.')})"
    return f"{at}: {problem.message}"
