from typing import Any

import msgspec

from gpu_scheduler.agent.projects import AgentProject, Projects


def project(name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> AgentProject:
    meta = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created}
    return msgspec.convert({"metadata": meta, "spec": spec}, AgentProject)


def test_the_policy_is_that_of_the_namespaces_project() -> None:
    projects = Projects()
    projects.changed(project("a", namespaces=["a1", "a2"], overCapPolicy="kill"))
    projects.changed(project("b", namespaces=["b1"]))
    assert [projects.policy(ns) for ns in ("a1", "a2", "b1", "c")] == ["kill", "kill", "", ""]
    assert [projects.project(ns) for ns in ("a1", "b1", "c")] == ["a", "b", ""]
    assert projects.namespaces == {"a1", "a2", "b1"}


def test_a_change_and_a_deletion_are_followed() -> None:
    projects = Projects()
    projects.changed(project("a", namespaces=["a1"], overCapPolicy="kill"))
    projects.changed(project("a", namespaces=["a2"], overCapPolicy="warn"))
    assert (projects.policy("a1"), projects.policy("a2")) == ("", "warn")
    projects.gone("", "a", "uid-a")
    assert not projects.namespaces


def test_of_two_that_claim_a_namespace_the_older_has_it() -> None:
    projects = Projects()
    projects.changed(project("new", "2026-02-01T00:00:00Z", namespaces=["n"], overCapPolicy="kill"))
    projects.changed(project("old", "2026-01-01T00:00:00Z", namespaces=["n"], overCapPolicy="warn"))
    assert projects.policy("n") == "warn"
