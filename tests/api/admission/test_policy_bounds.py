"""No object is too large for the chart's policies: each list, as long as may be, and longer.

Which lists they walk is read from the chart (tests/chart/policies.py); each needs a row in
`bounded`. With as many entries as are looked through the verdict is that of an object without them;
with more the refusal names the list. Pods and Bindings are sent as protobuf too, which holds more
in a request. ``make policies`` sends as many as the API server takes (`largest_requests`).
"""

import json
import re
from copy import deepcopy
from itertools import count
from typing import Any

import pytest
from tests.api import protobuf
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.admission import long_lists
from tests.api.admission.bounded import Row, rows
from tests.api.admission.conftest import BEFORE
from tests.api.admission.objects import ELSEWHERE, PROJECT, VISIBLE, created, pod, pods
from tests.api.caller import MERGE_PATCH, Answer, Caller
from tests.chart.policies import bound, policies, walks

Json = dict[str, Any]

JSON = "application/json"
WITHOUT_A_ROW = {
    # Nobody can write such a pod: see BEFORE.
    ("allocations", "oldObject.metadata.annotations"),
    ("allocations", "oldObject.spec.initContainers"),
    # The API server lets an update take out some of the old ones, and add none.
    ("allocations", "object.spec.schedulingGates"),
    # And of these take out none, so that the new ones are at least as many.
    ("allocations", "oldObject.spec.ephemeralContainers"),
    ("devices", "oldObject.spec.ephemeralContainers"),
    # The API server lets a debug container ask for nothing.
    ("allocations", "object.spec.ephemeralContainers[].resources.limits"),
    ("devices", "object.spec.ephemeralContainers[].resources.limits"),
}
NOT_REFUSED = {"sweeps", "share-hints"}  # what is longer is left to the operator, or not warned of
numbers = count()


def refused(answer: Answer) -> bool:
    return answer.status in {403, 422} and "ValidatingAdmissionPolicy" in answer.message


@pytest.fixture
def users(admin: Caller, editor: Caller, operator: Caller) -> dict[str, Caller]:
    return {"admin": admin, "editor": editor, "operator": operator}


def most(row: Row) -> int:
    """The entries that are looked through."""
    return min(bound(policy, row.path) for policy in row.policies)


def sent(users: dict[str, Caller], row: Row, entries: int, content: str = JSON) -> Answer:
    """What is said of the row's request with so many entries."""
    body, path, name = deepcopy(row.body), row.way[1], f"long-{next(numbers)}"
    if row.existing is not None:
        there = deepcopy(row.existing)
        there["metadata"]["name"] = name
        if row.is_old:
            long_lists.grow(there, row.field, entries)
        make(users["admin"], row, there)
        path = path.replace("NAME", name)
    if row.way[0] != "PATCH" and body:
        body["metadata"]["name"] = name if "nobody" not in path else "nobody"
    if not row.is_old:
        long_lists.grow(body, row.field, entries)
    data = protobuf.encoded(body) if content == protobuf.CONTENT_TYPE else json.dumps(body).encode()
    kind = MERGE_PATCH if row.way[0] == "PATCH" else content
    return users[row.user].send(row.way[0], f"{path}?dryRun=All", data if body else None, kind)


def make(admin: Caller, row: Row, body: Json) -> None:
    """What is there before the request; nobody collects it though its owners are nowhere."""
    status, body["metadata"]["finalizers"] = body.pop("status", None), ["x/stays"]
    path = row.way[1].partition("/NAME")[0]
    answer = admin.create(path, body)
    assert answer.ok, answer.message
    if status:
        answer = admin.patch(f"{path}/{body['metadata']['name']}/status", {"status": status})
        assert answer.ok, answer.message


def test_every_list_that_a_policy_walks_has_a_row() -> None:
    covered = {(policy, row.path) for row in rows() for policy in row.policies}
    walked = {
        (name, path) for name in policies() if name not in NOT_REFUSED for path in walks(name)
    }
    assert walked - covered == WITHOUT_A_ROW


@pytest.mark.parametrize("row", rows(), ids=str)
def test_what_is_looked_through_is_judged(users: dict[str, Caller], row: Row) -> None:
    if "shares" in row.policies and not HAS_MUTATING_POLICIES:
        pytest.skip("Kubernetes before 1.36")
    answer = sent(users, row, most(row))
    assert refused(answer), answer
    assert row.verdict in answer.message


def names_the_list(row: Row, answer: Answer) -> bool:
    found = re.search(rf"{re.escape(row.says)}: (\d+) entries[^;]*, at most (\d+) ", answer.message)
    return found is not None and int(found[1]) > int(found[2]) >= most(row)


def encodings(row: Row) -> list[str]:
    is_known = row.body.get("kind") in protobuf.OF_KIND and row.way[0] != "PATCH"
    return [protobuf.CONTENT_TYPE if is_known else JSON]


@pytest.mark.parametrize("row", rows(), ids=str)
def test_what_is_longer_is_refused_by_name(users: dict[str, Caller], row: Row) -> None:
    answer = sent(users, row, most(row) + 1, *encodings(row))
    assert refused(answer), answer
    assert names_the_list(row, answer)


def test_what_is_there_and_longer_is_in_nobodys_way(admin: Caller, operator: Caller) -> None:
    """Its status, its labels and its end; what changes the list is refused."""
    path = pods(ELSEWHERE, BEFORE["metadata"]["name"])
    for sub, body in (
        ("", {"metadata": {"labels": {"y": "z"}, "finalizers": None}}),
        ("/status", {"status": {"reason": "x"}}),
    ):
        answer = admin.patch(f"{path}{sub}?dryRun=All", body)
        assert answer.ok, answer.message
    assert admin.send("DELETE", f"{path}?dryRun=All").ok
    for sub, body in (
        ("", {"metadata": {"annotations": {"y": "z"}}}),
        ("/status", {"metadata": {"annotations": {"y": "z"}}}),
    ):
        answer = admin.patch(f"{path}{sub}?dryRun=All", body)
        assert refused(answer), answer
        assert "metadata.annotations: 1201 entries, at most 1000" in answer.message
    answer = operator.patch(f"{path}?dryRun=All", {"metadata": {"labels": {"y": "z"}}})
    assert "metadata.annotations: 1200 entries, at most 1000" in answer.message


def test_a_flood_of_env_from_hides_nothing(editor: Caller) -> None:
    body = pod(PROJECT, runtimeClassName="nvidia")
    body["spec"]["containers"] = [{"name": "sly", "image": "x"}]
    long_lists.grow(body, "spec.containers[].envFrom", 90_000)
    data = protobuf.encoded(body)
    answer = editor.send("POST", f"{pods(PROJECT)}?dryRun=All", data, protobuf.CONTENT_TYPE)
    assert refused(answer), answer
    assert "envFrom: 90000 entries" in answer.message


def test_a_flood_of_debug_containers_hides_nothing(admin: Caller, editor: Caller) -> None:
    void = [{"name": VISIBLE, "value": "void"}]
    path = created(editor, pod(PROJECT, env=void, runtimeClassName="nvidia"))
    debug = [{"name": f"harmless-{n}", "image": "x", "env": void} for n in range(600)]
    debug += [{"name": f"silent-{n}", "image": "x"} for n in range(700)]
    answer = admin.patch(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": debug}})
    assert refused(answer), answer
    assert "spec.ephemeralContainers: 1300 entries" in answer.message


def test_a_pod_that_does_not_ask_may_have_more_than_one_that_does(editor: Caller) -> None:
    body = pod(ELSEWHERE)
    long_lists.grow(body, "spec.containers", 100)
    for each, some in (("env", 20), ("volumeMounts", 30), ("ports", 30)):
        for number, one in enumerate(body["spec"]["containers"]):
            one[each] = [long_lists.entry(each, number * some + n) for n in range(some)]
    body["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    answer = editor.create(f"{pods(ELSEWHERE)}?dryRun=All", body)
    assert answer.ok, answer.message
