"""Which answers of the API server are final."""

import pytest

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Status

FINAL = (400, 402, 403, 404, 405, 406, 411, 413, 414, 415, 417, 422, 431, 451)
LATER = (0, 301, 302, 307, 401, 407, 408, 409, 410, 421, 423, 425, 429, 500, 502, 503, 504, 599)


@pytest.mark.parametrize("code", FINAL)
def test_what_is_wrong_with_the_request_itself_is_final(code: int) -> None:
    assert errors.final(errors.from_answer(code, b"no"))
    assert errors.final(errors.from_status(Status(code=code)))


@pytest.mark.parametrize("code", LATER)
def test_what_says_nothing_about_the_request_is_not(code: int) -> None:
    assert not errors.final(errors.from_answer(code, b"no"))


def test_no_answer_and_no_leadership_are_not_final() -> None:
    for kind in (errors.Unavailable, errors.NotLeader):
        assert not errors.final(kind(message="no"))


def test_whatever_is_no_answer_of_the_api_server_is_not_final() -> None:
    assert not errors.final(ValueError("no"))
