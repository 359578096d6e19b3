"""What-ifs: each in a process of its own, on a copy of what the next plan is made from.

The planner's process is not held up: copies are made between two cycles and shared for seconds,
their text is written in a thread, and the other process has the lowest priority, bounds of time and
memory, and is the first to go where the pod has none left. One of a user at a time, two in all.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from gpu_scheduler.dashboard.views import ProblemView, WhatIfAnswer, WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.dashboard.what_if import WhatIfTask
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.dump import Dump, written
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity

PROGRAM = "gpu_scheduler.simulate.asked"
AT_ONCE, WAITING = 2, 30
SECONDS = 30.0  # in all; of a CPU it gets less, which the process itself sees to
_OLD_SECONDS, _OLDEST_SECONDS = 5.0, 30.0  # that a copy may be, by what it cost
_CORE = 0.05  # that copies may take of one for long
_MOST_ANSWER_BYTES = 1 << 20
_ONE_AT_A_TIME = RefusedAnswer(429, "one what-if at a time: your last one is still planned", 5)
_BUSY = RefusedAnswer(503, "too many what-ifs wait; try again", 10)
_LATE = RefusedAnswer(
    503, f"the plan took more than {SECONDS:g} s, or too much memory; ask for less", 10
)
_NOTHING = RefusedAnswer(503, "nothing is planned here just now; try again", 2)


class WhatIfPlanner(Protocol):
    """What is planned with."""

    def dump(self) -> Dump:
        """A copy of it."""
        ...


class Planner(Protocol):
    """Who leads."""

    @property
    def planning(self) -> WhatIfPlanner:
        """Its plans."""
        ...

    @property
    def state(self) -> ClusterState:
        """What it knows."""
        ...


class WhatIfProcesses:
    """Answers, within bounds."""

    def __init__(
        self, leading: Callable[[], Planner | None], environment: Mapping[str, str] | None = None
    ) -> None:
        """``leading``: whose plans; ``environment``: of the processes, None: a bare one."""
        self._leading = leading
        self._environment = environment if environment is not None else _bare()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._asking: set[Identity] = set()
        self._copied: tuple[float, bytes] | None = None  # until when it is good, monotonic seconds
        self._copying = asyncio.Lock()
        self._running: set[asyncio.subprocess.Process] = set()

    def close(self) -> None:
        """End what runs."""
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def answer(
        self, question: WhatIfQuestion, reader: Reader, visible: Visible
    ) -> WhatIfAnswer:
        """What would be, as far as the reader may see it.

        Raises:
            Refusal: there is no answer, and why.
        """
        if reader.who in self._asking:
            raise _ONE_AT_A_TIME
        if len(self._asking) >= WAITING:
            raise _BUSY
        self._asking.add(reader.who)
        try:
            async with self._slots:
                return await self._answer(question, visible)
        finally:
            self._asking.discard(reader.who)

    async def _answer(self, question: WhatIfQuestion, visible: Visible) -> WhatIfAnswer:
        leader = self._leading()
        if leader is None:
            raise _NOTHING
        task = _task(question, visible, leader.state)
        given = msgspec.json.encode(task) + b"\n" + await self._copy(leader)
        code, said = await self._run(given)
        try:
            if code == 0:
                return msgspec.json.decode(said, type=WhatIfAnswer)
            if code == 2:
                raise RefusedAnswer(400, msgspec.json.decode(said, type=ProblemView).error)
        except msgspec.DecodeError:
            pass
        raise _LATE

    async def _copy(self, leader: Planner) -> bytes:
        async with self._copying:
            now = asyncio.get_running_loop().time()
            if self._copied is None or now > self._copied[0]:
                began = time.thread_time()
                dump = leader.planning.dump()
                took = time.thread_time() - began
                text, more = await asyncio.to_thread(_text, dump)
                self._copied = now + _good_for(took + more), text
            return self._copied[1]

    async def _run(self, given: bytes) -> tuple[int, bytes]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(self._environment),
            cwd="/",
        )
        self._running.add(process)
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await process.communicate(given)
            return process.returncode or 0, said[:_MOST_ANSWER_BYTES]
        except TimeoutError:
            return -1, b""
        except OSError:  # it ended before it had read all
            return -1, b""
        except Exception:
            unexpected("dashboard", "a what-if")
            return -1, b""
        finally:
            self._running.discard(process)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _text(dump: Dump) -> tuple[bytes, float]:
    """And the seconds of a CPU that writing it took."""
    began = time.thread_time()
    return b"".join(written(dump)), time.thread_time() - began


def _good_for(cpu_seconds: float) -> float:
    """Seconds that a copy is used which cost so much."""
    return min(max(_OLD_SECONDS, cpu_seconds / _CORE), _OLDEST_SECONDS)


def _task(question: WhatIfQuestion, visible: Visible, state: ClusterState) -> WhatIfTask:
    classes = state.classes.records.values()
    return WhatIfTask(
        question=question,
        visible=visible,
        owners={
            namespace: str(owner)
            for record in state.projects.records.values()
            for namespace in record.namespaces
            if (owner := state.projects.owner(namespace)) is not None
        },
        classes={
            each.name: {"match": each.match, "shapes": dict(each.shapes)}
            for each in classes
            if not each.problem
        },
    )


def _bare() -> dict[str, str]:
    """Where our modules are, and nothing of the operator's settings."""
    return {"PYTHONPATH": ":".join(path for path in sys.path if path), "OPENBLAS_NUM_THREADS": "1"}
