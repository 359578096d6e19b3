"""What cannot be followed is known: which, for how long, and why; each change is said once."""

import logging

import pytest

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.watches import Watches, backoff

JOBS, NAMESPACES = "/apis/x/v1/gpujobs", "/api/v1/namespaces"
CLASSES = "/apis/x/v1/gpuclasses"


class Stage:
    def __init__(self) -> None:
        self.now, self.back = 100.0, 0
        self.watches = Watches(lambda: self.now)
        self.watches.need([JOBS, CLASSES], [CLASSES], self._back)

    def _back(self) -> None:
        self.back += 1


def gone() -> errors.ApiError:
    return errors.NotFound(404, "", "404 page not found")


def test_nothing_is_lost_that_nobody_has_tried() -> None:
    watches = Stage().watches
    assert not watches.blind()
    assert watches.missing() == ""
    assert watches.seconds() == {}


def test_it_is_said_what_is_lost_since_when_and_why() -> None:
    stage = Stage()
    stage.watches.followed(NAMESPACES)
    stage.watches.lost(JOBS, gone())
    stage.now += 7
    stage.watches.lost(JOBS, gone())
    assert stage.watches.missing() == f"watch of {JOBS}: lost for 7 s: 404 page not found (404)\n"
    assert stage.watches.seconds() == {JOBS: 7.0, NAMESPACES: 0.0}
    stage.watches.followed(JOBS)
    assert stage.watches.missing() == ""
    assert stage.watches.seconds() == {JOBS: 0.0, NAMESPACES: 0.0}


def test_what_ends_a_watch_again_and_again_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A proxy that cuts what is silent for a minute; then another cause; then none for a while."""
    stage = Stage()
    cut, reset = ConnectionError("Server disconnected"), ConnectionResetError()
    for why, seconds in ((cut, 60), (cut, 60), (cut, 60), (reset, 60), (reset, 700), (reset, 60)):
        stage.watches.broke(JOBS, why)
        stage.watches.broke(NAMESPACES, "ended at once")
        stage.now += seconds
    said = [record.getMessage() for record in caplog.records if JOBS in record.getMessage()]
    assert said == [
        f"watch of {JOBS}: {why}; it is opened again"
        for why in ("Server disconnected", "ConnectionResetError", "ConnectionResetError")
    ]
    assert len(caplog.records) == len(said) + 2
    assert not stage.watches.missing()


def test_a_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    for error in (gone(), gone(), errors.Forbidden(403, "Forbidden", "no"), gone(), gone()):
        stage.watches.lost(JOBS, error)
    stage.watches.followed(JOBS)
    stage.watches.followed(JOBS)
    said = [record.getMessage() for record in caplog.records]
    rest = "; nothing is decided meanwhile"
    assert said == [
        f"watch of {JOBS}: 404 page not found (404){rest}",
        f"watch of {JOBS}: no (403 Forbidden){rest}",
        f"watch of {JOBS}: 404 page not found (404){rest}",
        f"watch of {JOBS}: back after 0.0 s",
    ]


def test_only_what_is_needed_makes_blind_and_its_return_is_told() -> None:
    stage = Stage()
    stage.watches.lost(NAMESPACES, gone())
    assert not stage.watches.blind()
    stage.watches.followed(CLASSES)
    stage.watches.lost(CLASSES, gone())
    stage.watches.lost(JOBS, gone())
    stage.watches.followed(NAMESPACES)
    stage.watches.followed(JOBS)
    assert stage.watches.blind()
    assert stage.back == 0
    stage.watches.followed(CLASSES)
    assert not stage.watches.blind()
    assert stage.back == 1


def test_what_need_not_exist_is_lost_only_if_it_was_there() -> None:
    watches = Stage().watches
    watches.lost(CLASSES, gone())
    assert not watches.blind()
    watches.lost(CLASSES, errors.Forbidden(403, "Forbidden", "no"))
    assert watches.blind()
    watches.lost(CLASSES, gone())
    assert not watches.blind()
    watches.followed(CLASSES)
    watches.lost(CLASSES, gone())
    assert watches.blind()


def test_what_is_back_is_tried_within_five_seconds_and_not_ten_times_a_second() -> None:
    for chance in (0.0, 0.999):
        delays = [backoff(lambda: chance).delay_seconds(n) for n in range(40)]  # noqa: B023
        assert max(delays) < 5
        assert min(delays) >= 0.1
        assert min(delays[5:]) >= 2
