import asyncio

import pytest
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.runtime.common.parts import Parts


async def for_ever() -> None:
    await asyncio.Event().wait()


async def over() -> None:
    await asyncio.sleep(1)


async def cancelled_from_inside() -> None:
    asyncio.get_running_loop().call_later(1, (inner := asyncio.Future[None]()).cancel)
    await inner


async def raises() -> None:
    await asyncio.sleep(1)
    raise KeyError("x")


@pytest.mark.parametrize("part", [over, cancelled_from_inside, raises])
@virtual
async def test_no_part_ends_in_silence(part: object) -> None:
    with pytest.raises(ExceptionGroup) as found:
        async with asyncio.timeout(60), Parts() as group:
            group.create_task(for_ever())
            group.create_task(part())  # type: ignore[operator]
    assert part.__name__ in str(found.value.exceptions) or part is raises  # type: ignore[attr-defined]


@virtual
async def test_parts_that_are_cancelled_from_outside_end_as_tasks_do() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), Parts() as group:
            group.create_task(for_ever())
