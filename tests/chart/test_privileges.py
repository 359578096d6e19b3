"""Least privilege: no wildcard, no secret, nothing that leads to more rights."""

from collections.abc import Iterator

import pytest
from tests.chart.conftest import Object, Render

TOO_MUCH = {
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/proxy",
    "nodes/proxy",
    "nodes/status",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "certificatesigningrequests",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
}


def rules(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    for each in objects:
        if each["kind"] in ("Role", "ClusterRole"):
            assert each["rules"], f"{each['metadata']['name']} has no rules"
            for rule in each["rules"]:
                yield each["metadata"]["name"], rule


def complaints(rule: Object) -> list[str]:
    """What is too much in a rule."""
    values = [v for key in ("apiGroups", "resources", "verbs") for v in rule.get(key, ())]
    found = [f"wildcard {value}" for value in values if "*" in value]
    found += [f"resource {r}" for r in rule.get("resources", ()) if r in TOO_MUCH]
    found += [f"verb {v}" for v in rule["verbs"] if v in ("escalate", "bind", "impersonate")]
    found += ["nonResourceURLs"] if rule.get("nonResourceURLs") else []
    return found


def test_no_role_holds_more_than_it_needs(objects: list[Object]) -> None:
    checked = list(rules(objects))
    assert len(checked) > 10
    for name, rule in checked:
        assert not complaints(rule), f"{name}: {rule}"


def test_no_option_gives_more(render: Render) -> None:
    """Neither operator nor agents read a Secret, whatever is switched on."""
    plain = len(list(rules(render())))
    on = ("sweeps.readLogs=true", "holders.enabled=true", "sweeps.tpe=true")
    every = list(rules(render(*on, "dashboard.enabled=true")))
    assert len(every) > plain
    for name, rule in every:
        assert not complaints(rule), f"{name}: {rule}"


def test_the_operator_alone_asks_whose_a_token_is(objects: list[Object]) -> None:
    found = [(n, r["verbs"]) for n, r in rules(objects) if "tokenreviews" in r["resources"]]
    assert found == [("gpu-scheduler", ["create"])]


def test_the_operator_asks_what_users_may_see_where_the_dashboard_is_on(render: Render) -> None:
    def may(*values: str) -> list[str]:
        found = rules(render(*values))
        return [name for name, rule in found if "subjectaccessreviews" in rule["resources"]]

    assert (may(), may("dashboard.enabled=true")) == ([], ["gpu-scheduler"])


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ],
)
def test_the_check_sees_what_it_is_for(rule: Object) -> None:
    assert complaints(rule)


def test_people_write_neither_status_nor_cluster_kinds(objects: list[Object]) -> None:
    for name, rule in rules(objects):
        if name.endswith(("-viewer", "-editor", "-inventory")):
            writes = set(rule["verbs"]) - {"get", "list", "watch"}
            assert not writes or rule["resources"] == ["gpujobs"], name


def test_only_the_operator_binds(objects: list[Object]) -> None:
    holders = {name for name, rule in rules(objects) if "pods/binding" in rule["resources"]}
    assert holders == {"gpu-scheduler"}
