import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import cluster
from cluster.locks import exclusive


def count_up(folder: Path, times: int) -> None:
    counter = folder / "counter"
    for _ in range(times):
        with exclusive(folder / "lock"):
            counter.write_text(str(int(counter.read_text()) + 1))


def test_no_two_processes_hold_a_lock_at_once(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    context = get_context("spawn")
    workers = [context.Process(target=count_up, args=(tmp_path, 200)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "counter").read_text() == "600"


def test_a_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"):
        pass
    assert list(tmp_path.iterdir()) == []


HOLDER = """
import sys, time
from pathlib import Path
from cluster.locks import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_who_waits_is_told_once_and_gets_the_lock_of_a_holder_that_was_killed(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "lock"
    hack = str(Path(cluster.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, env={"PYTHONPATH": hack}
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        told = []

        def on_wait() -> None:
            told.append("waits")
            holder.kill()

        with exclusive(lock, on_wait=on_wait):
            assert told == ["waits"]
