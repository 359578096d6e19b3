"""Counts of pods for rules about others: equal to counting all pods anew, whatever happened."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.affinity.builders import HOST, Standing, affinity, apart, selector
from tests.unit.core.affinity.test_property import SELECTORS
from tests.unit.core.affinity.test_property import affinity as any_peers

from gpu_scheduler.core.model.affinity import AffinityRules, AffinityTerm, PodSelector
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.state.affinity import placed_pods as placed_pods
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore

ONE = ProjectName("one")


def store_of() -> PlacedPodStore:
    return PlacedPodStore(lambda namespace: ONE)


UIDS = st.sampled_from([PodUID(f"p{n}") for n in range(6)])
NODES = st.sampled_from(["n0", "n1"])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), UIDS, any_peers(), NODES, st.booleans()),
        st.tuples(st.just("drop"), UIDS),
        st.tuples(st.just("ask"), st.lists(SELECTORS, min_size=1, max_size=2).map(tuple)),
        st.tuples(st.just("begin")),
    ),
    max_size=20,
)


@given(EVENTS)
def test_counts_are_those_of_all_pods_counted_anew(events: list[tuple]) -> None:  # type: ignore[type-arg]
    store, there, asked = store_of(), {}, set()
    most, placed_pods.MOST_TALLIES = placed_pods.MOST_TALLIES, 2
    try:
        for event in events:
            match event:
                case "put", uid, who, node, ending:
                    store.put(uid, who, node, ending=ending)
                    there[uid] = who, node, ending
                case "drop", uid:
                    store.drop(uid)
                    there.pop(uid, None)
                case "ask", selectors:
                    store.count(selectors, staying=True)
                    asked.add(selectors)
                case _:
                    store.begin()
    finally:
        placed_pods.MOST_TALLIES = most
    naive = Standing()
    for who, node, ending in there.values():
        naive.on(node, who, ending=ending)
    for selectors in asked:
        for staying in (False, True):
            assert store.count(selectors, staying=staying) == naive.count(
                selectors, staying=staying
            )
    assert store.anti_affinity_pods() == naive.anti_affinity_pods()
    for who, _, _ in there.values():
        assert set(store.about(who)) == set(naive.about(who))
    assert len(store) == len(there)


def test_a_change_counts_as_news_only_where_somebody_asks() -> None:
    store = store_of()
    assert not store.put(PodUID("a"), affinity(app="x"), "n0", ending=False)
    assert store.count((selector(app="x"),), staying=False) == {"n0": 1}
    assert store.put(PodUID("b"), affinity(app="x"), "n1", ending=False)
    assert not store.put(PodUID("b"), affinity(app="x"), "n1", ending=False)
    assert store.put(PodUID("b"), affinity(app="x"), "n1", ending=True)
    assert not store.put(PodUID("c"), affinity(app="y"), "n1", ending=False)
    assert store.put(PodUID("d"), affinity(apart(app="z")), "n1", ending=False)
    assert store.drop(PodUID("b")) and not store.drop(PodUID("b")) and not store.drop(PodUID("c"))


def test_looking_much_up_is_spread_over_cycles(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(placed_pods, "SIGNATURES_PER_CYCLE", 3)
    store = store_of()
    for n in range(2):
        store.put(PodUID(f"{n}"), affinity(app=str(n)), "n0", ending=False)
    store.begin()
    first, second = (selector(app="0"),), (selector(app="1"),)
    assert store.count(first, staying=False) == {"n0": 1}
    assert store.count(second, staying=False) is None
    assert store.count(first, staying=False) == {"n0": 1}
    store.begin()
    assert store.count(second, staying=False) == {"n0": 1}


def test_what_nobody_asks_about_is_forgotten(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(placed_pods, "MOST_TALLIES", 0)
    store = store_of()
    store.put(PodUID("a"), affinity(app="x"), "n0", ending=False)
    store.count((selector(app="x"),), staying=False)
    store.begin()
    assert store.put(PodUID("b"), affinity(app="x"), "n0", ending=False)
    store.begin()
    assert not store.put(PodUID("c"), affinity(app="x"), "n0", ending=False)
    assert store.count((selector(app="x"),), staying=False) == {"n0": 3}


def test_a_term_binds_the_pods_of_its_own_project_and_no_others() -> None:
    owners = {"a": "one", "b": "one", "c": "two"}
    store = PlacedPodStore(lambda ns: ProjectName(owners[ns]) if ns in owners else None)
    for number, owner_namespace in enumerate(("a", "stranger")):
        term = AffinityTerm(HOST, PodSelector(None, ()), owner_namespace)
        who = affinity(AffinityRules(anti_affinity=(term,)), namespace=owner_namespace)
        store.put(PodUID(f"{number}"), who, "n0", ending=False)
    kept = {ns: [t.owner_namespace for t in store.about(affinity(namespace=ns))] for ns in "abcd"}
    assert kept == {"a": ["a"], "b": ["a"], "c": [], "d": []}
    assert [t.owner_namespace for t in store.about(affinity(namespace="stranger"))] == ["stranger"]
