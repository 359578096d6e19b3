"""The operator on a machine whose wall clock is a day ahead, and is set back by two at SIGUSR1."""

import signal
import time

DAY = 86_400.0

right, ahead = time.time, [DAY]
time.time = lambda: right() + ahead[0]


def set_back(*_: object) -> None:
    ahead[0] -= 2 * DAY


if __name__ == "__main__":
    from gpu_scheduler.main import main

    signal.signal(signal.SIGUSR1, set_back)
    main()
