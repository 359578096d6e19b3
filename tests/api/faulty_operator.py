"""The operator, a part of which fails when the process gets SIGUSR1: as by a mistake of ours."""

import asyncio
import signal
from typing import NoReturn

from gpu_scheduler.main import main
from gpu_scheduler.runtime.eviction.overdue import Overdue


async def fail(_: Overdue) -> NoReturn:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    await told.wait()
    raise ZeroDivisionError("a fault that a test put in")


Overdue.run = fail  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
