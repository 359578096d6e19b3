"""A trial: a loss that falls towards what its parameters are worth, reported at every step."""

import math
import os
import time

import gpu
from report import report, result


def main():
    """Report step by step, and end early where that is asked for."""
    rate, width = float(os.environ["HPARAM_LR"]), int(os.environ["HPARAM_WIDTH"])
    steps, seconds = int(os.environ["STEPS"]), float(os.environ["SECONDS_A_STEP"])
    gpu.start(2 + width / 64)
    worth = 0.08 + 0.09 * abs(math.log10(rate) + 2.6) + 0.6 / width
    for step in range(1, steps + 1):
        time.sleep(seconds)
        loss = worth + math.exp(-step / 4)
        print(f"step {step} of {steps}, val_loss {loss:.4f}", flush=True)
        if report(step, val_loss=loss):
            return
    result(val_loss=loss)


if __name__ == "__main__":
    main()
