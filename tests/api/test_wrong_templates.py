"""What is wrong in a pod template is said as strictly as kubectl says it of a Deployment.

The manifests of fixtures/field were written by people: an unquoted number or word where a pod has
text, and the other way about.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.caller import Caller
from tests.api.tenant import GROUP, Tenant, until

FIELD = Path(__file__).parents[1] / "fixtures" / "field" / "wrong-types-in-a-template.yaml"
WRONG = {
    "env-number": ("spec.template.spec.containers[0].env[0].value", "10", "string"),
    "args-number": ("spec.template.spec.containers[0].args[1]", "10", "string"),
    "label-number": ("spec.template.metadata.labels[version]", "1", "string"),
    "label-yes": ("spec.template.metadata.labels[gpu-team]", "true", "string"),
    "annotation-false": (
        "spec.template.metadata.annotations[sidecar.istio.io/inject]",
        "false",
        "string",
    ),
    "selector-true": ("spec.template.spec.nodeSelector[fast-disk]", "true", "string"),
    "grace-text": ("spec.template.spec.terminationGracePeriodSeconds", '"30"', "integer"),
    "port-text": ("spec.template.spec.containers[0].ports[0].containerPort", '"80"', "integer"),
    "size-list": ("spec.template.spec.volumes[0].emptyDir.sizeLimit", "[1]", "quantity"),
}


def template(metadata: Any = None, **spec: Any) -> dict[str, Any]:
    made = {"spec": {"containers": [{"name": "main", "image": "x"}]} | spec}
    return made if metadata is None else made | {"metadata": metadata}


def main(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "x"} | fields]


# Of a misspelt field: its path, and the field that was meant.
MISSPELT = {
    "node-selector": (template(nodeselector={"a": "b"}), "spec.nodeselector", "nodeSelector"),
    "mounts": (
        template(containers=main(volumeMount=[])),
        "spec.containers[0].volumeMount",
        "volumeMounts",
    ),
    "volume": (
        template(volumes=[{"name": "v", "emptydir": {}}]),
        "spec.volumes[0].emptydir",
        "emptyDir",
    ),
    "image": (template(image="x"), "spec.image", "spec.containers[].image"),
    "gpu": (template(containers=main(gpu=1)), "spec.containers[0].gpu", "spec.gpu"),
    "metadata": (template({"lables": {"a": "b"}}), "metadata.lables", "labels"),
}


def refused(tenant: Tenant, name: str) -> str:
    """The words in which a job is Invalid, and that it holds nothing."""
    message = tenant.wait_reason(name, "Invalid")
    status = tenant.status(name)
    assert status.get("allocatedGPU", "0") in ("", "0"), status
    assert tenant.batch_job(name)["code"] == 404
    return str(message)


def test_wrong_types_from_the_field_are_named_by_path_value_and_type(tenant: Tenant) -> None:
    for body in yaml.safe_load_all(FIELD.read_text()):
        meta = body["metadata"] | {"namespace": tenant.name}
        path = f"{GROUP}/namespaces/{tenant.name}/gpujobs"
        assert tenant.admin.create(path, body | {"metadata": meta}).ok
    for name, (field, value, expected) in WRONG.items():
        message = refused(tenant, name)
        assert message.startswith(f"{field}: "), message
        assert value in message and expected in message, message


def test_misspelt_fields_are_named_with_the_one_that_was_meant(tenant: Tenant) -> None:
    for name, (bad, _, _) in MISSPELT.items():
        tenant.submit(name, gpu=0.25, template=bad)
    for name, (_, field, meant) in MISSPELT.items():
        message = refused(tenant, name)
        assert message.startswith(f"spec.template.{field}: ") and meant in message, message


def test_a_role_and_the_short_form_are_judged_where_they_stand(tenant: Tenant) -> None:
    roles = [
        {"name": "lead", "gpu": 0.25, "image": "x"},
        {"name": "work", "gpu": 0.25, "template": template(nodeSelector={"fast": True})},
    ]
    tenant.submit("in-a-role", roles=roles)
    env = [{"name": "A", "valueFrom": {"secretKeyref": {"name": "s", "key": "k"}}}]
    tenant.submit("short", gpu=0.25, image="x", env=env)
    sweep = {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}
    tenant.submit("sweep", gpu=0.25, completions=2, sweep=sweep, template=template(hostnames="x"))
    message = refused(tenant, "in-a-role")
    assert message.startswith("spec.roles[1].template.spec.nodeSelector[fast]: is true"), message
    message = refused(tenant, "short")
    assert message.startswith("spec.env[0].valueFrom.secretKeyref: "), message
    assert "secretKeyRef" in message
    assert "spec.template.spec.hostnames: unknown field" in refused(tenant, "sweep")


@pytest.fixture
def bounded(admin: Caller) -> Tenant:
    """A tenant whose ResourceQuota lets no Job in."""
    made = Tenant(admin).create(quota=1)
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    assert admin.create(f"/api/v1/namespaces/{made.name}/resourcequotas", quota).ok
    return made


def test_a_quota_that_lets_no_job_in_is_no_mistake_in_a_template(bounded: Tenant) -> None:
    try:
        bounded.submit("wrong", gpu=0.25, template=template(nodeSelector={"fast": True}))
        bounded.submit("right", gpu=0.25, template=template())
        assert "nodeSelector[fast]" in refused(bounded, "wrong")
        until(lambda: "exceeded quota" in bounded.status("right")["message"], "the quota is named")
    finally:
        bounded.delete()


def test_what_validation_alone_finds_is_told_before_anything_is_held(tenant: Tenant) -> None:
    """Comparisons in tolerations are behind a gate that is off; the API server says what it has."""
    bad = {
        "comparison": (
            template(tolerations=[{"key": "sla", "operator": "Gt", "value": "95"}]),
            'spec.tolerations[0].operator: Unsupported value: "Gt"',
        ),
        "port": (
            template(containers=main(ports=[{"containerPort": 99999}])),
            "spec.containers[0].ports[0].containerPort: Invalid value: 99999",
        ),
        "no-image": (
            template(containers=[{"name": "main"}]),
            "spec.containers[0].image: Required value",
        ),
        "label": (template({"labels": {"a": "b c"}}), "metadata.labels: Invalid value"),
    }
    for name, (wrong, _) in bad.items():
        tenant.submit(name, gpu=0.25, template=wrong)
    for name, (_, words) in bad.items():
        message = refused(tenant, name)
        assert message.startswith(f"spec.template.{words}"), message
