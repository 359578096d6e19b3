"""What the chart and the operator must agree on, though neither can import the other."""

import filecmp
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.conftest import CHART, Object, Render

from gpu_scheduler.agent import settings as agent_settings
from gpu_scheduler.api import names
from gpu_scheduler.runtime.common.settings import PREFIX, OperatorSettings, load

CRDS = Path(__file__).parents[2] / "crds"


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    found = [each for each in objects if each["kind"] == kind]
    assert found, f"the chart makes no {kind}"
    return found


def operator_env(objects: list[Object]) -> list[dict[str, Any]]:
    (deployment,) = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [entry for entry in container["env"] if entry["name"].startswith(PREFIX)]


def test_the_charts_copy_of_the_crds_is_fresh() -> None:
    ours, theirs = CHART / "files" / "crds", CRDS
    assert sorted(p.name for p in ours.iterdir()) == sorted(p.name for p in theirs.glob("*.yaml"))
    for path in ours.iterdir():
        assert filecmp.cmp(path, theirs / path.name, shallow=False), "run `make crds`"


def test_rendering_changes_nothing_in_a_crds_spec(objects: list[Object]) -> None:
    rendered = {
        each["metadata"]["name"]: each for each in of_kind(objects, "CustomResourceDefinition")
    }
    for path in CRDS.glob("*.yaml"):
        source = yaml.safe_load(path.read_text())
        made = rendered.pop(source["metadata"]["name"])
        assert made["spec"] == source["spec"]
        assert made["apiVersion"] == source["apiVersion"]
    assert not rendered


def test_the_operator_takes_every_setting_of_the_chart(objects: list[Object]) -> None:
    env = {entry["name"]: entry.get("value", "from-the-pod") for entry in operator_env(objects)}
    settings = load(env)
    assert settings.lease_namespace == settings.identity == "from-the-pod"


def test_the_chart_has_the_operators_defaults(objects: list[Object]) -> None:
    env = {entry["name"]: entry["value"] for entry in operator_env(objects) if "value" in entry}
    # The chart knows its own image, its Service and its volume, which the operator cannot.
    known = ("CAP_IMAGE", "CAP_PULL_POLICY", "DUMP_SOCKET", "REPORT_PORT", "REPORT_URL")
    of_the_chart = {f"{PREFIX}{name}": env[f"{PREFIX}{name}"] for name in known}
    settings = load({**env, f"{PREFIX}IDENTITY": "x"})
    assert settings == load({f"{PREFIX}IDENTITY": "x", **of_the_chart})
    assert settings.cap_image


def test_every_variable_is_a_setting(objects: list[Object]) -> None:
    for entry in operator_env(objects):
        assert entry["name"].removeprefix(PREFIX).lower() in OperatorSettings.model_fields


def agent_env(objects: list[Object]) -> dict[str, str]:
    (daemons,) = of_kind(objects, "DaemonSet")
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    return {
        entry["name"]: entry.get("value", "from-the-pod")
        for entry in container["env"]
        if entry["name"].startswith(agent_settings.PREFIX)
    }


def test_the_chart_has_the_agents_defaults(objects: list[Object]) -> None:
    env = agent_env(objects)
    found = agent_settings.load(env)
    of_the_pod = {name: value for name, value in env.items() if value == "from-the-pod"}
    assert len(of_the_pod) == 3
    assert found == agent_settings.load(of_the_pod)


def test_the_policy_names_objects_as_the_agent_does(objects: list[Object]) -> None:
    policies = of_kind(objects, "ValidatingAdmissionPolicy")
    (policy,) = (p for p in policies if p["metadata"]["name"].endswith("-agent"))
    assert f"'{names.AGENT_LEASE_PREFIX}'" in policy["spec"]["matchConditions"][0]["expression"]


def test_the_policy_of_endings_says_what_the_operator_reads(objects: list[Object]) -> None:
    policies = of_kind(objects, "MutatingAdmissionPolicy")
    (policy,) = (p for p in policies if p["metadata"]["name"].endswith("-endings"))
    (mutation,) = policy["spec"]["mutations"]
    said = mutation["applyConfiguration"]["expression"]
    for word in (names.CONDITION_DISRUPTION, names.CONDITION_TIME_LIMIT, names.SAID_BY_POLICY):
        assert f"'{word}'" in said
    conditions = str(policy["spec"]["matchConditions"])
    assert all(w in conditions for w in (names.ALLOCATION, names.CONDITION_TIME_LIMIT))


def test_the_operator_takes_the_settings_of_holders(render: Render) -> None:
    objects = render("holders.enabled=true", "holders.scope=nodes", "holders.image=example/pause:1")
    settings = load({e["name"]: e.get("value", "from-the-pod") for e in operator_env(objects)})
    assert (settings.holders, settings.holders_sleep) == ("nodes", False)
    assert settings.holders_image == "example/pause:1"
    (deployment,) = of_kind(objects, "Deployment")
    assert settings.holders_owner == deployment["metadata"]["name"]
    classes = {each["metadata"]["name"] for each in of_kind(objects, "PriorityClass")}
    assert settings.holders_priority_class in classes


def test_reports_go_to_the_service_of_the_release(objects: list[Object]) -> None:
    env = {entry["name"]: entry.get("value", "from-the-pod") for entry in operator_env(objects)}
    settings = load(env)
    (service,) = (s for s in of_kind(objects, "Service") if names.LABEL_LEADER in str(s["spec"]))
    meta, (port,) = service["metadata"], service["spec"]["ports"]
    host = f"{meta['name']}.{meta['namespace']}.svc:{port['port']}"
    assert settings.report_url == f"http://{host}/reports"
    (deployment,) = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports[port["targetPort"]] == settings.report_port
    assert settings.pod == "from-the-pod"


def test_logs_are_read_where_the_right_to_is_given(render: Render) -> None:
    for value, read in (("true", True), ("false", False)):
        env = operator_env(render(f"sweeps.readLogs={value}"))
        settings = load({e["name"]: e.get("value", "from-the-pod") for e in env})
        assert settings.read_logs is read


def test_no_runtime_class_can_be_said(render: Render) -> None:
    env = {e["name"]: e.get("value") for e in operator_env(render("scheduling.runtimeClass="))}
    assert env["GPUSCHED_RUNTIME_CLASS"] == ""


@pytest.mark.parametrize("word", ["true", "false"])
def test_whether_placed_pods_get_an_event_can_be_said(render: Render, word: str) -> None:
    env = operator_env(render(f"shares.scheduledEvents={word}"))
    assert {e["name"]: e.get("value") for e in env}["GPUSCHED_SCHEDULED_EVENTS"] == word
    assert load({"GPUSCHED_SCHEDULED_EVENTS": word}).scheduled_events is (word == "true")


def test_names_are_those_that_the_operator_knows(objects: list[Object]) -> None:
    (priority,) = of_kind(objects, "PriorityClass")
    assert priority["metadata"]["name"] == names.PRIORITY_CLASS
    (role,) = [r for r in of_kind(objects, "Role") if r["metadata"]["name"].endswith("-leader")]
    assert [(r["resources"], r.get("resourceNames")) for r in role["rules"]] == [
        (["leases"], None),
        (["leases"], [names.LEASE]),
        (["limitranges"], None),
        (["limitranges"], [names.LEASE]),
        (["podtemplates"], None),
        (["leases"], None),
    ]


@pytest.mark.parametrize("name", [f"'{names.GROUP}/'", names.GATE, f"'{names.SCHEDULER_NAME}'"])
def test_the_policies_speak_of_the_operators_names(objects: list[Object], name: str) -> None:
    policies = of_kind(objects, "ValidatingAdmissionPolicy")
    assert any(name in str(each["spec"]).replace('"', "'") for each in policies)


def test_what_is_type_checked_names_no_parameter_of_a_kind_of_ours(render: Render) -> None:
    """Kubernetes 1.35 does not know ``params`` there before it knows the schema of a new CRD."""
    objects = render("admission.enabled=true", "admission.devices.deviceClasses={gpu.nvidia.com}")
    policies = of_kind(objects, "ValidatingAdmissionPolicy")
    ours = [p["spec"] for p in policies if names.GROUP in str(p["spec"].get("paramKind"))]
    assert ours
    for spec in ours:
        assert "params" not in str([spec.get("validations"), spec.get("variables")])


def test_the_notes_show_objects_that_the_models_accept() -> None:
    from gpu_scheduler.api.gpujob import GPUJobSpec
    from gpu_scheduler.api.gpuproject import GPUProjectSpec

    notes = (CHART / "templates" / "NOTES.txt").read_text()
    shown = [part.split("\nEND")[0] for part in notes.split("<<'END'\n")[1:]]
    project, job = (yaml.safe_load(text) for text in shown)
    assert (project["kind"], job["kind"]) == ("GPUProject", "GPUJob")
    GPUProjectSpec.model_validate(project["spec"])
    GPUJobSpec.model_validate(job["spec"])
