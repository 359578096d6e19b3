"""In a project's namespace nobody claims a GPU by DRA past the scheduler."""

from typing import Any

import pytest
from tests.api.admission.objects import ELSEWHERE, PROJECT, refused, wait_until
from tests.api.caller import Answer, Caller

GPU = "gpu.nvidia.com"
FORMS: dict[str, Any] = {
    "one request": [{"name": "r", "exactly": {"deviceClassName": GPU}}],
    "an alternative": [
        {
            "name": "r",
            "firstAvailable": [
                {"name": "a", "deviceClassName": "nic.example.com"},
                {"name": "b", "deviceClassName": "mig.nvidia.com"},
            ],
        }
    ],
    "the last of the most": [
        *({"name": f"r{n}", "exactly": {"deviceClassName": "nic.example.com"}} for n in range(31)),
        {"name": "r", "exactly": {"deviceClassName": GPU}},
    ],
}
OTHERS = [{"name": "r", "exactly": {"deviceClassName": "nic.example.com"}}]


def claims(who: Caller, kind: str, namespace: str, requests: Any) -> Answer:
    spec: Any = {"devices": {"requests": requests}}
    if kind == "resourceclaimtemplates":
        spec = {"spec": spec}
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/{kind}?dryRun=All"
    return who.create(path, {"metadata": {"name": "c"}, "spec": spec})


@pytest.mark.parametrize("kind", ["resourceclaims", "resourceclaimtemplates"])
@pytest.mark.parametrize("form", FORMS)
def test_a_claim_of_a_gpu_is_refused_with_its_class(admin: Caller, kind: str, form: str) -> None:
    wait_until(lambda: refused(claims(admin, kind, PROJECT, FORMS[form])))
    answer = claims(admin, kind, PROJECT, FORMS[form])
    assert "nvidia.com is a GPU; in a namespace of a GPUProject the GPU" in answer.message
    assert claims(admin, kind, ELSEWHERE, FORMS[form]).ok
    assert claims(admin, kind, PROJECT, OTHERS).ok
    assert claims(admin, kind, PROJECT, []).ok
