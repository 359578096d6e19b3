"""What the picture of a trace shows."""

from tests.perf.replay.causes import Cause
from tests.perf.replay.plot import demand, fills, lost_by_cause
from tests.perf.replay.run import Step

from gpu_scheduler.core.packing.policy import Packing


def step(milli: int, cause: Cause | None = None) -> Step:
    return Step(0.0, milli, 1, cause is None, 0, 0, cause)


def test_lost_demand_adds_up_by_cause():
    steps = [step(500), step(200, Cause.FRAGMENTED), step(100, Cause.MODEL), step(50)]
    assert demand(steps, 1000) == [50.0, 70.0, 80.0, 85.0]
    lost = lost_by_cause(steps, 1000)
    assert lost[Cause.FRAGMENTED] == [0.0, 20.0, 20.0, 20.0]
    assert lost[Cause.MODEL] == [0.0, 0.0, 10.0, 10.0]
    assert set(lost) == set(Cause)


def test_it_begins_a_little_before_anything_is_lost():
    steps = [*[step(100)] * 9, step(100, Cause.FRAGMENTED), *[step(100)] * 3]
    played, over = {Packing.FGD: steps}, {Packing.FGD: demand(steps, 1000)}
    assert round(fills(played, over)) == 91  # 70 % of what arrives: all of the end is seen
    early = [step(100, Cause.NEVER), *steps]
    assert fills({Packing.FGD: early}, {Packing.FGD: demand(early, 1000)}) == 70.0
    few = [step(100)] * 5
    assert fills({Packing.FGD: few}, {Packing.FGD: demand(few, 1000)}) == 35.0
