"""Run in the operator's pod by ``kubectl gpu dump``: prints what its socket says."""

import os
import shutil
import socket
import sys


def main() -> None:
    """Nothing is printed where nothing is planned."""
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(os.environ["GPUSCHED_DUMP_SOCKET"])
        with there.makefile("rb") as answer:
            shutil.copyfileobj(answer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
