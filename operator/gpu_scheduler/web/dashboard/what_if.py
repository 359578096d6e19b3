"""What-ifs: in a process of its own, on a copy of what the next plan is made from.

The planner's process is not held up: copies are made between two cycles and used for seconds, their
text is written in a thread, and one process answers all questions about a copy. It has the lowest
priority, takes a quarter of a core for long, has bounds of time and memory, and is the first to go
where the pod has none left. One question of a user at a time; each waits for its turn.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from gpu_scheduler.dashboard.views import ProblemView, WhatIfAnswer, WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.dashboard.what_if import CPU_SECONDS, WhatIfTask
from gpu_scheduler.runtime.dump import Dump, written
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity

PROGRAM = "gpu_scheduler.simulate.asked"
WAITING = 30
SECONDS = 30.0  # of a question; of a CPU it gets less, which the process itself sees to
_SHARE = 0.25  # that the process may take of a core for long: what is idle is not the pod's alone
_MOST_REST_SECONDS = 10.0  # after one that took all its time: others wait meanwhile
_OLD_SECONDS, _OLDEST_SECONDS = 5.0, 30.0  # that a copy may be, by what it cost
_COPY_SHARE = 0.05  # that copies may take of one for long
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


@dataclass(slots=True)
class _Copy:
    """Of what the next plan is made from."""

    made_at: float  # monotonic seconds
    text: bytes
    cpu_seconds: float  # that it took to make, and its process to read

    @property
    def until(self) -> float:
        """When it is too old: the later, the more it cost."""
        return self.made_at + _good_for(self.cpu_seconds)


class WhatIfProcesses:
    """Answers, within bounds."""

    def __init__(
        self, leading: Callable[[], Planner | None], environment: Mapping[str, str] | None = None
    ) -> None:
        """``leading``: whose plans; ``environment``: of the processes, None: a bare one."""
        self._leading = leading
        self._environment = environment if environment is not None else _bare()
        self._turn = asyncio.Lock()
        self._asking: set[Identity] = set()
        self._copied: _Copy | None = None
        self._process: asyncio.subprocess.Process | None = None  # that has read this copy
        self._retires: asyncio.Task[None] | None = None
        self._rests_until = 0.0

    async def close(self) -> None:
        """End what runs."""
        if self._retires is not None:
            self._retires.cancel()
        await self._end()

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
            async with self._turn:
                await asyncio.sleep(self._rests_until - asyncio.get_running_loop().time())
                return await self._answer(question, visible)
        finally:
            self._asking.discard(reader.who)

    async def _answer(self, question: WhatIfQuestion, visible: Visible) -> WhatIfAnswer:
        leader = self._leading()
        if leader is None:
            raise _NOTHING
        task = msgspec.json.encode(_task(question, visible, leader.state))
        code, said = await self._ask(leader, task)
        try:
            if code == 0:
                return msgspec.json.decode(said, type=WhatIfAnswer)
            if code == 2:
                raise RefusedAnswer(400, msgspec.json.decode(said, type=ProblemView).error)
        except msgspec.DecodeError:
            pass
        raise _LATE

    async def _ask(self, leader: Planner, task: bytes) -> tuple[int, bytes]:
        """What the process says, and how it means it; -1: nothing."""
        copy = await self._copy(leader)
        process, new = await self._reads(copy)
        loop, cpu_seconds, answered = asyncio.get_running_loop(), float(CPU_SECONDS), False
        began = loop.time()
        try:
            async with asyncio.timeout(SECONDS):
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(task + b"\n")
                await process.stdin.drain()
                code, size, used = map(int, (await process.stdout.readline()).split())
                said = await process.stdout.readexactly(min(size, _MOST_ANSWER_BYTES))
            answered, cpu_seconds = size <= _MOST_ANSWER_BYTES, used / 1e6
            return code, said
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            return -1, b""  # it ended, or is ended
        finally:
            now = loop.time()
            cpu_seconds = min(now - began, cpu_seconds)
            rest = cpu_seconds * (1 / _SHARE - 1)
            self._rests_until = now + min(rest, _MOST_REST_SECONDS)
            if new:
                copy.cpu_seconds += cpu_seconds
            if not answered:
                await self._end()

    async def _reads(self, copy: _Copy) -> tuple[asyncio.subprocess.Process, bool]:
        """The process that has this copy, and whether it is a new one."""
        process = self._process
        if process is not None and process.returncode is None:
            return process, False
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
        self._process = process
        assert process.stdin is not None
        process.stdin.write(b"%d\n" % len(copy.text))
        process.stdin.write(copy.text)
        return process, True

    async def _copy(self, leader: Planner) -> _Copy:
        now = asyncio.get_running_loop().time()
        if self._copied is None or now >= self._copied.until:
            await self._end()
            began = time.thread_time()
            dump = leader.planning.dump()
            took = time.thread_time() - began
            text, more = await asyncio.to_thread(_text, dump)
            self._copied = _Copy(now, text, took + more)
            if self._retires is not None:
                self._retires.cancel()
            self._retires = asyncio.create_task(self._retire(self._copied))
        return self._copied

    async def _retire(self, copy: _Copy) -> None:
        """What nobody asks about any more takes no memory."""
        loop = asyncio.get_running_loop()
        while self._copied is copy:
            await asyncio.sleep(copy.until - loop.time())
            async with self._turn:  # after the first answer it may be used longer
                if loop.time() >= copy.until:
                    self._copied = None
                    await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _text(dump: Dump) -> tuple[bytes, float]:
    """And the seconds of a CPU that writing it took."""
    began = time.thread_time()
    return b"".join(written(dump)), time.thread_time() - began


def _good_for(cpu_seconds: float) -> float:
    """Seconds that a copy is used which cost so much."""
    return min(max(_OLD_SECONDS, cpu_seconds / _COPY_SHARE), _OLDEST_SECONDS)


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
