import asyncio
from typing import Any

import pytest
from tests.perf.queue_load import IN_FLIGHT, apply

from gpu_scheduler.kube.errors import ApiError, Conflict, Forbidden


class Server:
    """Takes creates, and counts how many are under way."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.at_once = self.most = self.taken = 0

    async def create(self, path: str, body: bytes) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        self.taken += 1


def jobs(count: int) -> list[tuple[str, Any]]:
    return [("/jobs", {"metadata": {"name": f"a-{n}"}}) for n in range(count)]


async def test_all_are_applied_with_a_bounded_number_of_requests_in_flight() -> None:
    server = Server()
    applied = await apply(server, jobs(200))  # type: ignore[arg-type]
    assert (server.taken, server.most) == (200, IN_FLIGHT)
    assert len(applied.answered) == 200
    assert applied.began <= min(applied.answered.values()) <= applied.last


async def test_a_job_whose_first_answer_was_lost_is_there() -> None:
    error = Conflict(message="exists", maybe_applied=True)
    applied = await apply(Server(error), jobs(1))  # type: ignore[arg-type]
    assert applied.answered.keys() == {"a-0"}


async def test_a_refusal_is_an_error_of_its_own_kind() -> None:
    with pytest.raises(Forbidden):
        await apply(Server(Forbidden(message="no")), jobs(3))  # type: ignore[arg-type]
