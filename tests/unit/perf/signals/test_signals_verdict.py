from typing import Any

import pytest
from tests.perf.signals.scrapes import Age, Scrape, age_of, summary
from tests.perf.signals.verdict import bounds, ratios, table

_INFO = 'gpusched_gpujob_info{{namespace="ns",gpujob="{}",project="p",type="training"}} 1.0\n'
_HELD = 'gpusched_gpujob_gpu_memory_used_bytes{{namespace="ns",gpujob="{}",project="p"}} {}\n'
MIB = 1 << 20


def scrape(text: str, began: float = 99.0, ended: float = 100.0) -> Scrape:
    return Scrape(began, ended, text)


def test_a_scrape_is_as_old_as_the_newest_work_that_is_in_it_and_older_than_what_is_missing() -> (
    None
):
    bound = {("ns", "old"): 50.0, ("ns", "shown"): 96.0, ("ns", "missing"): 97.0}
    text = _INFO.format("old") + _INFO.format("shown") + _HELD.format("old", (1024 + 30) * MIB)
    age = age_of(scrape(text), bound, began=60.0)
    assert age == Age(most=4.0, least=3.0, said=[10.0], works=2)


def test_where_nothing_is_missing_it_may_be_new() -> None:
    age = age_of(scrape(_INFO.format("a")), {("ns", "a"): 50.0}, began=0.0)
    assert age is not None
    assert age.least == 0.0


def test_a_scrape_that_names_no_work_has_no_age() -> None:
    assert age_of(scrape("gpusched_leader 1.0\n"), {}, began=0.0) is None
    assert "ageAtMostMax" not in summary([scrape("a 1\n")], [], failed=0)


def phase(letter: str, ms: float, *, answer_ms: float = 10.0) -> dict[str, Any]:
    three = {"meanMs": ms, "p50Ms": ms, "p99Ms": ms}
    return {
        "phase": letter,
        "planning": {"wall": three, "cpu": three, "percentOfACore": 1.0},
        "cycle": three, "collector": {"count": 1.0, **three},
        "cpuSecondsAMinute": {"operator": 6.0},
        "rssMiB": 100.0,
        "podsPlacedASecond": 2.0,
        "stall": three,
        "stallBesidePlanning": three,
        "gpuUsage": {"writesAMinute": 1.0, "bytesAMinute": 1.0},
        "etcd": {"putsAMinute": 1.0, "putBytesAMinute": 1.0, "dbBytesAMinute": 1.0},
        "metrics": {
            "bytes": 1, "failed": 0, "p50Ms": answer_ms, "maxMs": answer_ms, "stall": three,
            "stallBesidePlanning": three, "ageAtLeastMax": 1.0, "sinceLookedP50": 5.0,
        },
    }  # fmt: skip


def test_ratios_are_of_means_and_of_each_pair() -> None:
    found = ratios([phase("A", 10), phase("B", 11), phase("A", 20), phase("B", 19), phase("C", 30)])
    assert found["planning cycle that places, wall, mean"] == {
        "B/A": 1.0, "C/A": 2.0, "C/B": 2.0, "pairs": [1.1, 0.95],
    }  # fmt: skip


@pytest.mark.parametrize(("ms", "met"), [(10.5, True), (10.6, False)])
def test_planning_may_be_slower_by_a_twentieth(ms: float, met: bool) -> None:
    found = {each["what"]: each["met"] for each in bounds([phase("A", 10), phase("B", ms)])}
    assert found["planning cycle that places, wall, mean, B/A"] is met


def test_a_slow_answer_misses_its_bound_and_the_table_says_so() -> None:
    phases = [phase("A", 10), phase("B", 10, answer_ms=51.0)]
    missed = [each["what"] for each in bounds(phases) if not each["met"]]
    assert missed == ["/metrics answered, slowest, ms, B", "/metrics answered, p50, ms, B"]
    assert "| /metrics answered, p50, ms, B | 51 | 50 | missed |" in table(phases)
