"""Pods that have a place and do not exist yet: what looking one up gives, against a look at all."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import make_assignment

from gpu_scheduler.core.model.request import JobKey, NodeFilter, PodShape, PodUID
from gpu_scheduler.runtime.jobs.parallelism import told, widest
from gpu_scheduler.state.queue.nominated import NominatedPod, NominatedPods

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


def naive(there: list[NominatedPod], role: str, index: int) -> NominatedPod | None:
    mine = [each for each in there if each.role == role]
    return next((each for each in mine if each.index == index), mine[0] if mine else None)


@given(steps)
def test_a_look_at_all_gives_the_same(history: list[tuple[str, str | int, int]]) -> None:
    nominated, there = NominatedPods(), list[NominatedPod]()
    for number, (what, whom, amount) in enumerate(history):
        if what == "place":
            role, parallelism = (
                str(whom),
                1 + max(amount, nominated.untold_parallelism(KEY, str(whom))),
            )
            place = make_assignment(pod=PodUID(f"prospective-{number}"))
            there.append(NominatedPod(place, role, number, parallelism, KIND))
            nominated.put(there[-1])
        elif what == "goes" and there:
            gone = there.pop(int(whom) % len(there))
            assert nominated.drop(KEY, gone.uid) is gone
            assert nominated.drop(KEY, gone.uid) is None
        elif what == "told":
            told(there, {str(whom): amount})
        assert {e.uid for e in nominated.of(KEY)} == {e.uid for e in there}
        assert (KEY in nominated) is bool(there)
        assert nominated.untold(KEY) is any(
            nominated.untold_parallelism(KEY, e.role) for e in there
        )
        for role in ROLES:
            assert nominated.of_role(KEY, role) == [e for e in there if e.role == role]
            assert nominated.untold_parallelism(KEY, role) == widest(
                e for e in there if e.role == role
            )
            for index in range(number + 2):
                assert nominated.whose_place(KEY, role, index) is naive(there, role, index)
