"""Pods that have a place and do not exist yet: what looking one up gives, against a look at all."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import make_assignment

from gpu_scheduler.core.model.request import JobKey, NodeFilter, PodShape, PodUID
from gpu_scheduler.runtime.jobs.width import told, widest
from gpu_scheduler.state.queue.awaited import AwaitedPod, AwaitedPods

KEY = JobKey("team-a/job")
KIND = PodShape((), NodeFilter())
ROLES = ("lead", "work")

# What happens: one more is placed (role, owed pods), one goes, or its Job is told of some.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(ROLES), st.integers(0, 6)),
        st.tuples(st.just("goes"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("told"), st.sampled_from(ROLES), st.integers(0, 12)),
    ),
    max_size=40,
)


def naive(there: list[AwaitedPod], role: str, index: int) -> AwaitedPod | None:
    mine = [each for each in there if each.role == role]
    return next((each for each in mine if each.index == index), mine[0] if mine else None)


@given(steps)
def test_a_look_at_all_gives_the_same(history: list[tuple[str, str | int, int]]) -> None:
    awaited, there = AwaitedPods(), list[AwaitedPod]()
    for number, (what, whom, amount) in enumerate(history):
        if what == "place":
            role, width = str(whom), 1 + max(amount, awaited.untold_width(KEY, str(whom)))
            place = make_assignment(pod=PodUID(f"unmade-{number}"))
            there.append(AwaitedPod(place, role, number, width, KIND))
            awaited.put(there[-1])
        elif what == "goes" and there:
            gone = there.pop(int(whom) % len(there))
            assert awaited.drop(KEY, gone.uid) is gone
            assert awaited.drop(KEY, gone.uid) is None
        elif what == "told":
            told(there, {str(whom): amount})
        assert {e.uid for e in awaited.of(KEY)} == {e.uid for e in there}
        assert (KEY in awaited) is bool(there)
        assert awaited.untold(KEY) is any(awaited.untold_width(KEY, e.role) for e in there)
        for role in ROLES:
            assert awaited.of_role(KEY, role) == [e for e in there if e.role == role]
            assert awaited.untold_width(KEY, role) == widest(e for e in there if e.role == role)
            for index in range(number + 2):
                assert awaited.whose_place(KEY, role, index) is naive(there, role, index)
