"""The rules as a table, each on work of its own and on that of all others."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_fields
from tests.unit.usage.advice.seen import work_of
from tests.unit.usage.advice.traces import CAP, CHANGED, TRACES, good

from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.rules import RULES, advise
from gpu_scheduler.usage.advice.work import Work, WorkType

FOR_ALL = {
    RuleName.GPU_NEVER_USED,
    RuleName.GPU_IDLE,
    RuleName.MEMORY_TIGHT,
    RuleName.CONTENDED,
    RuleName.OVERSIZED,
}
# A capital letter is the headline, a small one something else that holds.
MATRIX = """\
GPU_NEVER_USED       Xx...........
GPU_IDLE             .X...........
THROTTLED            ..X..........
MEMORY_TIGHT         ...X.........
CONTENDED            ....X........
DATA_BOUND           .....X.....x.
ADD_WORKERS          ......X....x.
CODE_BOUND           .......X...x.
STOP_AND_GO          ........X....
SCALING_INEFFICIENT  .........X...
NO_TENSOR_CORES      ..........X..
OVERSIZED            ...........X.
SMALL_BATCH          ............X
"""


def said(work: Work) -> list[RuleName]:
    return [each.rule for each in advise(work)]


def row(work: Work) -> str:
    found = said(work)
    cells = {rule: "x" if at else "X" for at, rule in enumerate(found)}
    return "".join(cells.get(rule, ".") for rule in RuleName)


def test_each_rule_is_the_headline_of_its_own_trace_and_of_no_other() -> None:
    table = "".join(f"{rule:20} {row(make())}\n" for rule, make in TRACES.items())
    print(table)  # noqa: T201
    assert table == MATRIX


def test_the_rules_stand_in_the_order_of_precedence() -> None:
    assert [rule.name for rule in RULES] == list(RuleName) == list(TRACES)


@pytest.mark.parametrize("kind", [WorkType.INTERACTIVE, WorkType.SERVICE])
def test_only_some_rules_speak_of_interactive_work_and_services(kind: WorkType) -> None:
    spoken = {rule for rule, make in TRACES.items() if rule in said(replace(make(), type=kind))}
    assert spoken == FOR_ALL


def test_of_training_all_rules_speak() -> None:
    work = replace(TRACES[RuleName.CONTENDED](), type=WorkType.TRAINING)
    assert said(work)[0] == RuleName.CONTENDED


@pytest.mark.parametrize("rule", RuleName)
def test_work_that_follows_the_advice_stops_getting_it(rule: RuleName) -> None:
    assert said(CHANGED[rule]()) == []


@pytest.mark.parametrize("rule", RuleName)
def test_where_nothing_is_known_nothing_is_said(rule: RuleName) -> None:
    work = TRACES[rule]()
    unknown = Work(
        namespace="team-a",
        name=work.name,
        type=work.type,
        share=work.share,
        running_seconds=work.running_seconds,
        idle_timeout=work.idle_timeout,
    )
    assert said(unknown) == []


WINDOWS = [
    rule for rule in RuleName if rule not in FOR_ALL or rule in ("MEMORY_TIGHT", "CONTENDED")
]


@pytest.mark.parametrize("rule", WINDOWS)
def test_one_window_alone_says_nothing(rule: RuleName) -> None:
    work = TRACES[rule]()
    assert rule not in said(replace(work, windows=work.windows[-1:], refused=None))


@pytest.mark.parametrize("rule", [each for each in WINDOWS if each != "SCALING_INEFFICIENT"])
def test_a_rule_begins_with_two_windows_and_goes_with_two(rule: RuleName) -> None:
    work = TRACES[rule]()
    healthy = CHANGED[rule]()
    shown, other = work.windows[-1], healthy.windows[-1]
    for pattern, holds in {
        "yy": True, "nyy": True, "yyn": True, "yynn": False, "ynyn": False, "nyny": False,
        "nnyy": True, "ynny": False, "yny": False, "yyny": True, "nnyn": False,
    }.items():  # fmt: skip
        windows = [shown if letter == "y" else other for letter in pattern]
        assert (rule in said(replace(work, windows=windows))) is holds, pattern


def test_a_slow_pod_begins_and_goes_with_two_windows_as_well() -> None:
    work = TRACES[RuleName.SCALING_INEFFICIENT]()
    *others, slow = work.members
    for means, holds in (((0.9, 0.9, 0.4, 0.4), True), ((0.4, 0.4, 0.9, 0.9), False),
                         ((0.9, 0.4, 0.9, 0.4), False), ((0.4, 0.4, 0.4, 0.9), True),
                         ((None, None, None, None), False)):  # fmt: skip
        members = [*others, replace(slow, means=means)]
        assert (said(replace(work, members=members)) != []) is holds, means


SPEED = [RuleName.THROTTLED, *WINDOWS[WINDOWS.index(RuleName.CONTENDED) :]]


@pytest.mark.parametrize("rule", SPEED)
def test_who_hardly_computes_is_told_nothing_of_speed(rule: RuleName) -> None:
    work = TRACES[rule]()
    computing = 0.15 if rule == RuleName.STOP_AND_GO else 0.5
    windows = [replace_fields(each, computing=computing) for each in work.windows]
    assert rule not in said(replace(work, windows=windows))


@pytest.mark.parametrize("rule", SPEED)
def test_windows_with_few_looks_are_no_evidence(rule: RuleName) -> None:
    work = TRACES[rule]()
    windows = [replace_fields(each, looks=20) for each in work.windows]
    assert rule not in said(replace(work, windows=windows))


@pytest.mark.parametrize("rule", [RuleName.OVERSIZED, RuleName.SMALL_BATCH])
def test_who_is_crowded_out_or_refused_is_not_told_to_use_less(rule: RuleName) -> None:
    work = TRACES[rule]()
    crowded = {"busy_median": 0.6 * work.share, "device_busy_median": 1.0, "neighbours_above": 0.3}
    for fields, headline in ((crowded, "CONTENDED"), ({"refused": 2}, "MEMORY_TIGHT")):
        windows = [replace_fields(each, **fields) for each in work.windows]
        assert said(replace(work, windows=windows)) == [headline]


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_two_busy_programs_on_one_device_are_told_nothing_of_speed(share: float) -> None:
    looks = good(busy=share, device_busy=1.0, memory_mib=0.95 * share * CAP)
    assert said(work_of(looks, share)) == []
