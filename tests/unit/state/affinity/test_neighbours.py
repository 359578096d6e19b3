"""Counts of pods for rules about others: equal to counting all pods anew, whatever happened."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.peer_builders import HOST, Standing, apart, peers, selector
from tests.unit.core.test_peers_property import SELECTORS
from tests.unit.core.test_peers_property import peers as any_peers

from gpu_scheduler.core.model.peers import AffinityTerm, PodRules, PodSelector
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.state.affinity import neighbours
from gpu_scheduler.state.affinity.neighbours import NeighbourBook

ONE = ProjectName("one")


def book_of() -> NeighbourBook:
    return NeighbourBook(lambda namespace: ONE)


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
    book, there, asked = book_of(), {}, set()
    most, neighbours.MOST_TALLIES = neighbours.MOST_TALLIES, 2
    try:
        for event in events:
            match event:
                case "put", uid, who, node, ending:
                    book.put(uid, who, node, ending=ending)
                    there[uid] = who, node, ending
                case "drop", uid:
                    book.drop(uid)
                    there.pop(uid, None)
                case "ask", selectors:
                    book.count(selectors, staying=True)
                    asked.add(selectors)
                case _:
                    book.begin()
    finally:
        neighbours.MOST_TALLIES = most
    naive = Standing()
    for who, node, ending in there.values():
        naive.on(node, who, ending=ending)
    for selectors in asked:
        for staying in (False, True):
            assert book.count(selectors, staying=staying) == naive.count(selectors, staying=staying)
    assert book.bearers() == naive.bearers()
    for who, _, _ in there.values():
        assert set(book.about(who)) == set(naive.about(who))
    assert len(book) == len(there)


def test_a_change_counts_as_news_only_where_somebody_asks() -> None:
    book = book_of()
    assert not book.put(PodUID("a"), peers(app="x"), "n0", ending=False)
    assert book.count((selector(app="x"),), staying=False) == {"n0": 1}
    assert book.put(PodUID("b"), peers(app="x"), "n1", ending=False)
    assert not book.put(PodUID("b"), peers(app="x"), "n1", ending=False)
    assert book.put(PodUID("b"), peers(app="x"), "n1", ending=True)
    assert not book.put(PodUID("c"), peers(app="y"), "n1", ending=False)
    assert book.put(PodUID("d"), peers(apart(app="z")), "n1", ending=False)
    assert book.drop(PodUID("b")) and not book.drop(PodUID("b")) and not book.drop(PodUID("c"))


def test_looking_much_up_is_spread_over_cycles(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(neighbours, "SIGNATURES_PER_CYCLE", 3)
    book = book_of()
    for n in range(2):
        book.put(PodUID(f"{n}"), peers(app=str(n)), "n0", ending=False)
    book.begin()
    first, second = (selector(app="0"),), (selector(app="1"),)
    assert book.count(first, staying=False) == {"n0": 1}
    assert book.count(second, staying=False) is None
    assert book.count(first, staying=False) == {"n0": 1}
    book.begin()
    assert book.count(second, staying=False) == {"n0": 1}


def test_what_nobody_asks_about_is_forgotten(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(neighbours, "MOST_TALLIES", 0)
    book = book_of()
    book.put(PodUID("a"), peers(app="x"), "n0", ending=False)
    book.count((selector(app="x"),), staying=False)
    book.begin()
    assert book.put(PodUID("b"), peers(app="x"), "n0", ending=False)
    book.begin()
    assert not book.put(PodUID("c"), peers(app="x"), "n0", ending=False)
    assert book.count((selector(app="x"),), staying=False) == {"n0": 3}


def test_a_term_binds_the_pods_of_its_own_project_and_no_others() -> None:
    owners = {"a": "one", "b": "one", "c": "two"}
    book = NeighbourBook(lambda ns: ProjectName(owners[ns]) if ns in owners else None)
    for number, bearer in enumerate(("a", "stranger")):
        term = AffinityTerm(HOST, PodSelector(None, ()), bearer)
        who = peers(PodRules(anti_affinity=(term,)), namespace=bearer)
        book.put(PodUID(f"{number}"), who, "n0", ending=False)
    kept = {ns: [t.bearer for t in book.about(peers(namespace=ns))] for ns in "abcd"}
    assert kept == {"a": ["a"], "b": ["a"], "c": [], "d": []}
    assert [t.bearer for t in book.about(peers(namespace="stranger"))] == ["stranger"]
