import pytest

from gpu_scheduler.agent.driver import Vitals, Xid
from gpu_scheduler.agent.health import FATAL, Health, fatal_message, vitals_message


@pytest.mark.parametrize("code", [13, 31, 43, 45, 68, 63, 92, 94, 0, 9999])
def test_what_programs_cause_is_no_fault_of_the_device(code: int) -> None:
    assert fatal_message(code) is None
    health = Health()
    assert health.xid(Xid("GPU-a", code)) is None
    assert health.message("GPU-a", Vitals()) is None


@pytest.mark.parametrize("code", [48, 62, 74, 79, 95, 119])
def test_a_fatal_xid_is_named_with_its_number(code: int) -> None:
    health = Health()
    health.xid(Xid("GPU-a", code))
    assert health.message("GPU-a", Vitals()) == f"XID {code}: {FATAL[code]}"


def test_a_fatal_xid_sticks_and_concerns_one_device() -> None:
    health = Health()
    health.xid(Xid("GPU-a", 79))
    health.xid(Xid("GPU-a", 48))
    for _ in range(3):
        assert health.message("GPU-a", Vitals()) == f"XID 79: {FATAL[79]}"
    assert health.message("GPU-b", Vitals()) is None


def test_an_ignored_xid_is_ignored() -> None:
    health = Health([79])
    assert health.xid(Xid("GPU-a", 79)) is None
    assert health.message("GPU-a", Vitals()) is None


def test_a_device_that_was_away_and_came_back_is_well() -> None:
    health = Health()
    health.xid(Xid("GPU-a", 79))
    assert health.unreadable("GPU-a", "GPU is lost") == f"XID 79: {FATAL[79]}; GPU is lost"
    assert health.message("GPU-a", Vitals()) is None
    assert health.message("GPU-a", Vitals(uncorrected_ecc=1)) is not None


def test_an_event_of_nobody_makes_nobody_unhealthy() -> None:
    health = Health()
    health.xid(Xid("", 79))
    assert health.message("GPU-a", Vitals()) is None


@pytest.mark.parametrize(
    ("vitals", "message"),
    [
        (Vitals(), None),
        (Vitals(uncorrected_ecc=0, recovery_action=0), None),
        (Vitals(uncorrected_ecc=3), "3 uncorrectable ECC errors since the last reset"),
        (Vitals(remap_failed=True), "a bad memory row could not be remapped"),
        (Vitals(recovery_action=1), "the driver asks for a GPU reset"),
        (Vitals(recovery_action=3), None),
        (Vitals(recovery_action=99), None),
    ],
)
def test_what_the_driver_remembers_counts_while_it_says_so(
    vitals: Vitals, message: str | None
) -> None:
    assert vitals_message(vitals) == message
