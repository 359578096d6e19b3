"""The stages are data for kwok; here is what must hold of them whatever kwok does."""

from itertools import combinations
from typing import Any

import pytest
import yaml

from cluster.control_plane import STAGES_FILE

DOCUMENTS = list(yaml.safe_load_all(STAGES_FILE.read_text()))
STAGES = {each["metadata"]["name"]: each["spec"] for each in DOCUMENTS if each["kind"] == "Stage"}


def requirements(name: str) -> dict[str, dict[str, Any]]:
    return {
        " ".join(each["key"].split()): each for each in STAGES[name]["selector"]["matchExpressions"]
    }


def contradict(first: dict[str, Any], second: dict[str, Any]) -> bool:
    operators = {first["operator"], second["operator"]}
    values = [set(each.get("values", ())) for each in (first, second)]
    if operators == {"In"}:
        return not values[0] & values[1]
    if operators == {"In", "NotIn"}:
        inside, outside = values if first["operator"] == "In" else values[::-1]
        return inside <= outside
    return operators == {"Exists", "DoesNotExist"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pair
        for pair in combinations(STAGES, 2)
        if STAGES[pair[0]]["resourceRef"] == STAGES[pair[1]]["resourceRef"]
    ],
)
def test_no_two_stages_match_the_same_object(first: str, second: str) -> None:
    one, other = requirements(first), requirements(second)
    assert any(contradict(one[key], other[key]) for key in one.keys() & other.keys())


def test_every_annotation_that_a_stage_reads_is_explained_at_the_top() -> None:
    text = STAGES_FILE.read_text()
    header, _, body = text.partition("apiVersion:")
    read = {part.split('"')[0] for part in body.split('"kwok.x-k8s.io/')[1:]}
    assert read
    assert all(f"kwok.x-k8s.io/{name}" in header for name in read)


def test_a_node_lives_through_its_longest_silence() -> None:
    from cluster.settings import Settings

    longest_ms = STAGES["node-heartbeat"]["delay"]["jitterDurationMilliseconds"]
    assert longest_ms / 1000 < Settings().node_grace_seconds
