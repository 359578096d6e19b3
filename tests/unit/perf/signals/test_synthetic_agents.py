from itertools import pairwise
from random import Random

import pytest
from tests.perf.signals.answers import LEAST_MIB, NodeAnswers
from tests.perf.signals.faults import Fault, faults_of, garbage
from tests.perf.signals.nodes import agent_address, agent_ip, has_address

from gpu_scheduler.api.orders import OrderedContainer, OrderedPod, Orders
from gpu_scheduler.usage.answer import AgentUsage, BadAnswerError, ShareUse, parse

DEVICES = ["GPU-a", "GPU-b"]


def orders(*pods: str) -> Orders:
    container = OrderedContainer(0, "main", {"GPU-a": 20_000})
    return Orders(
        "node", pods=tuple(OrderedPod(each, "ns", each, (container,), work=each) for each in pods)
    )


def node() -> NodeAnswers:
    return NodeAnswers(DEVICES, 80_000, Random(1))


def asked(answers: NodeAnswers, now: float, since: int = 0) -> AgentUsage:
    return parse(answers.answer(since, now))


def share(answers: NodeAnswers, now: float, since: int = 0) -> ShareUse:
    (found,) = asked(answers, now, since).shares
    return found


def test_an_agent_speaks_of_exactly_the_pods_of_its_orders() -> None:
    answers = node()
    assert asked(answers, 0.0).shares == ()
    answers.told(orders("p", "q"), 0.0)
    assert {each.pod_uid for each in asked(answers, 1.0).shares} == {"p", "q"}
    answers.told(orders("q"), 2.0)
    found = asked(answers, 3.0)
    assert [each.pod_uid for each in found.shares] == ["q"]
    assert [each.work for each in found.ended] == ["p"]


def test_sums_only_grow_and_are_of_all_seconds() -> None:
    answers = node()
    answers.told(orders("p"), 0.0)
    seen = [share(answers, float(now)) for now in range(10, 100, 10)]
    for before, after in pairwise(seen):
        assert after.totals.seconds == pytest.approx(before.totals.seconds + 10)
        assert after.totals.busy_seconds >= before.totals.busy_seconds
    assert seen[-1].totals.seconds == pytest.approx(seen[-1].age_seconds, abs=1)
    assert seen[-1].totals.held_gpu_seconds == pytest.approx(seen[-1].totals.seconds / 4)


def test_what_a_share_holds_says_when_it_was_looked_at() -> None:
    answers = node()
    answers.told(orders("p"), 0.0)
    assert share(answers, 33.5).memory_mib == LEAST_MIB + 33.5


def test_windows_are_told_to_who_has_none_and_once_after_each_quarter_of_an_hour() -> None:
    answers = node()
    answers.told(orders("p"), 0.0)
    assert share(answers, 10.0).windows
    looks = [asked(answers, float(now)).look for now in range(0, 2000, 10)]
    told = [share(answers, now * 10.0 + 10, since=look).windows for now, look in enumerate(looks)]
    assert 2 <= sum(each is not None for each in told) <= 5


def test_half_of_the_agents_are_no_good_in_three_ways() -> None:
    found = faults_of(12)
    assert [found.count(each) for each in Fault] == [6, 2, 2, 2]


def test_no_garbage_is_an_answer() -> None:
    taken = []
    for number in range(6):
        status, body = garbage(number, Random(number))
        try:
            parse(body)
        except BadAnswerError:
            continue
        taken.append(status)
    assert set(taken) <= {"500 Internal Server Error"}


def test_each_agent_has_a_loopback_address_of_its_own() -> None:
    found = {agent_ip(number) for number in range(1250)}
    assert len(found) == 1250
    assert all(each.startswith("127.") for each in found)
    assert not any(each.endswith((".0", ".255")) for each in found)


def test_an_address_that_was_written_over_in_part_is_none() -> None:
    status = agent_address(3)["status"]
    assert has_address(status)
    assert not has_address({**status, "containerStatuses": [{"name": "agent"}]})
    assert not has_address({"phase": "Running"})
