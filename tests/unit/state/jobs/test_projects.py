from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import make_project

from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.jobs.projects import ProjectStore

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
A, B = ProjectName("a"), ProjectName("b")


def test_the_oldest_claim_wins_and_the_later_one_is_told() -> None:
    store = ProjectStore()
    store.put(make_project("a", "shared", created=NEW))
    store.put(make_project("b", "shared", "own", created=OLD))
    assert store.owner("shared") == "b"
    assert store.conflicts(A) == (Claim("shared", B),)
    assert store.conflicts(B) == ()
    assert store.owner("own") == "b"


def test_claims_of_the_same_second_go_by_name() -> None:
    store = ProjectStore()
    store.put(make_project("b", "shared"))
    store.put(make_project("a", "shared"))
    assert store.owner("shared") == "a"


def test_a_namespace_goes_to_the_next_claimant() -> None:
    store = ProjectStore()
    store.put(make_project("a", "shared", created=OLD))
    store.put(make_project("b", "shared", created=NEW))
    assert store.drop(A)
    assert store.owner("shared") == "b"
    assert not store.drop(A)


def test_the_same_again_is_no_news() -> None:
    store = ProjectStore()
    assert store.put(make_project())
    assert not store.put(make_project())
    assert store.owner("nowhere") is None
    assert store.conflicts(ProjectName("none")) == ()


claims = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.lists(st.sampled_from("xyz"), unique=True), st.sampled_from([OLD, NEW])),
)


@given(claims, st.randoms())
def test_ownership_does_not_depend_on_the_order_of_arrival(
    claims: dict[str, tuple[list[str], str]], random: "object"
) -> None:
    records = [make_project(n, *ns, created=at) for n, (ns, at) in sorted(claims.items()) if ns]
    first, second = ProjectStore(), ProjectStore()
    for record in records:
        first.put(record)
    random.shuffle(records)  # type: ignore[attr-defined]
    for record in records:
        second.put(record)
    assert [first.owner(ns) for ns in "xyz"] == [second.owner(ns) for ns in "xyz"]
    for record in records:
        name = record.project.name
        lost = {claim.name for claim in first.conflicts(name)}
        assert lost == {ns for ns in record.namespaces if first.owner(ns) != name}
