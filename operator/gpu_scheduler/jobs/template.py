"""The pod template that a GPUJob means, with its checkpoint's volume, before anything of ours.

``image`` and its companions stand for a template with one container, which gets no credentials for
the API server: a training script needs none, and every pod is smaller by a volume (ADR 0021); a
template decides for itself. Whatever comes back is a fresh copy: rendering writes into it, and the
GPUJob in the informer's cache stays as it was.
"""

from copy import deepcopy
from typing import Any

from gpu_scheduler.api.gpujob import MAIN_CONTAINER, GPUJobSpec
from gpu_scheduler.jobs.checkpoint import volumes

_SHORT_FORM = {"image", "image_pull_policy", "command", "args", "env", "working_dir", "resources"}


def pod_template(spec: GPUJobSpec) -> dict[str, Any]:
    """A PodTemplateSpec as JSON, with ``metadata`` and ``spec`` present."""
    more = volumes(spec.checkpoint)
    if spec.template is None:
        short = spec.model_dump(mode="json", by_alias=True, exclude_none=True, include=_SHORT_FORM)
        main = {"name": MAIN_CONTAINER, **short}
        pod_spec: dict[str, Any] = {"containers": [main], "automountServiceAccountToken": False}
        return {"metadata": {}, "spec": pod_spec | ({"volumes": more} if more else {})}
    template = deepcopy(spec.template)
    if more:
        template["spec"]["volumes"] = [*(template["spec"].get("volumes") or ()), *more]
    return {"metadata": template.get("metadata") or {}, "spec": template["spec"]}
