"""Our objects lose what nobody reads before anything is built of them, and too large a spec."""

from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.api.size import MOST_BYTES, MOST_ELEMENTS, elements
from gpu_scheduler.runtime.informers.bodies import body, cut, said_of_size
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.runtime.informers.specs import Specs


def raw(obj: Any) -> msgspec.Raw:
    return msgspec.Raw(orjson.dumps(obj))


def with_pod(**pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x"}
    return gpujob_body(template={"spec": {"containers": [container], **pod}})


def test_what_is_read_comes_out_as_it_was() -> None:
    obj = gpujob_body(status={"phase": "Pending"}, finalizers=("a/b",), deleting=True)
    labels = {"a": "b", "helm.sh/chart": "c"}  # the first one is on its Jobs as well
    obj["metadata"] |= {"labels": labels, "managedFields": [{"manager": "kubectl"}]}
    found = body(raw(obj))
    del labels["helm.sh/chart"], obj["metadata"]["managedFields"]
    assert found == obj
    assert gpujob_record(found).labels == (("a", "b"),)


def test_many_labels_are_none() -> None:
    obj = gpujob_body()
    obj["metadata"]["labels"] = {f"x.y/{i}": "z" * 60 for i in range(20_000)}
    assert gpujob_record(body(raw(obj))).labels == ()
    assert gpujob_record(obj).labels == (), "whoever reads it"


@pytest.mark.parametrize(
    "pod",
    [{"foo": [{}] * 395_000}, {"foo": "x" * 900_000}, {"foo": [[]] * MOST_ELEMENTS}],
)
def test_a_spec_that_is_too_large_is_told_and_not_there(pod: dict[str, Any]) -> None:
    obj = with_pod(**pod)
    assert len(cut(raw(obj))) < 2000
    found = body(raw(obj))
    assert "spec" not in found
    record = gpujob_record(found)
    assert (record.spec, record.said) == (None, None)
    assert record.problem.startswith("spec: has ") and "ConfigMap" in record.problem
    assert record.problem == gpujob_record(obj).problem, "whoever reads it"


def test_nothing_of_what_is_refused_is_kept() -> None:
    specs = Specs()
    for number in range(20):
        record = gpujob_record(gpujob_body(gpu=-1, args=[f"{number}" * 1000]), None, specs)
        assert record.problem
    assert len(specs._known) == 0


def test_a_long_script_with_many_commas_is_no_list() -> None:
    obj = with_pod(containers=[{"name": "main", "image": "x", "args": [',"[{\\' * 25_000]}])
    assert not said_of_size(body(raw(obj)))
    assert gpujob_record(obj).problem == ""


def test_many_finalizers_are_no_more_than_some() -> None:
    found = body(raw(gpujob_body(finalizers=tuple(f"x.y/{i}" for i in range(20_000)))))
    assert len(found["metadata"]["finalizers"]) == 32
    assert len(gpujob_record(found).finalizers) == 32


json = st.recursive(
    st.none() | st.integers(0, 9) | st.text(st.sampled_from('a"\\[]{},:'), max_size=6),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=20,
)


def counted(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + sum(map(counted, value.values()))
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(counted, value))
    return 0


@pytest.mark.long
@given(json)
def test_no_more_is_counted_than_what_counts_by_walking(value: Any) -> None:
    text = orjson.dumps([value, [0] * (MOST_ELEMENTS + 1)])
    assert elements(text) == counted([value, [0] * (MOST_ELEMENTS + 1)])
    assert len(text) < MOST_BYTES
