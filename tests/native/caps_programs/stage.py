"""Plays programs in one container; compares what the driver holds with the model at each step."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.native.build import NativeBuild
from tests.native.caps_programs.model import CONTEXT, MIB, Model
from tests.native.caps_programs.program import Op, Program, Step
from tests.native.container import HEADER_BYTES, HELD_AT, SLOT_BYTES, SLOTS, Container
from tests.native.fake_gpu import FakeGPU

ANSWER_SECONDS = 30.0  # of a call, also on a machine that is busy: beyond that nobody answers
MOST_BYTES = 1 << 16
PIECE_MIB = 8
OUT_OF_MEMORY = 2
ZYGOTE = 0
UNMEASURED_PART = 5  # of the cap, where an eighth is guessed


@dataclass
class Fault:
    """What went wrong, and with which step."""

    step: int
    words: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.words}"


class _Broken(Exception):
    """The program cannot go on."""


@dataclass
class _Peer:
    socket: socket.socket
    waits_for: set[int] = field(default_factory=set)


class Stage:
    """A container with one cap, and the process that makes all others."""

    def __init__(
        self,
        folder: Path,
        native: NativeBuild,
        cap_mib: int,
        *,
        library: bool = True,
        measured: bool = True,
    ) -> None:
        """``library`` False: nothing is preloaded, to see that what is above the cap is found.

        ``measured`` False: nobody has told what a context takes, and it is more than is guessed.
        """
        context_mib = CONTEXT // MIB if measured else cap_mib // UNMEASURED_PART
        options = {"context_mib": context_mib}
        self.gpu = FakeGPU(folder / "gpu", native, total_mib=8192, options=options)
        told = context_mib if measured else None
        self.box = Container(self.gpu, folder / "box", cap_mib=cap_mib, context_mib=told)
        self._cap, self._library = cap_mib * MIB, library
        self._context = context_mib * MIB
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = str(folder / "socket")
        self._listener.bind(path)
        self._listener.listen(16)
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            module = "tests.native.caps_programs.actor"
            self._zygote = subprocess.Popen(
                [sys.executable, "-m", module, path, str(ZYGOTE)],
                env=self.box.environment if library else self.gpu.environment,
                stderr=errors,
            )
        self._used = _Used(self.gpu)
        self._peers: dict[int, _Peer] = {}
        self._ends: dict[int, int] = {}  # descriptors that tell of the end of who may live
        self._forks: dict[int, int] = {}  # read ends of pipes: nobody that it forks is yet to begin
        self._answers: dict[int, dict[str, Any]] = {}
        self._given: dict[int, list[int]] = {}
        self._ids = 0
        self._accept()
        self.exports_stay = False
        self.exports_stay = self._probe_exports()

    def close(self) -> None:
        """End everybody."""
        for number in [n for n in self._ends if n != ZYGOTE]:
            self._kill(number)
        self._zygote.kill()
        self._zygote.wait()
        os.close(self._ends.pop(ZYGOTE))
        self._lose(ZYGOTE)
        for number in list(self._forks):
            self._close_forks(number)
        self._listener.close()
        self._used.close()

    # --- a program ---

    def play(self, program: Program) -> Fault | None:
        """Play it to its end; what was wrong first, if anything was."""
        model, at = Model(exports_stay=self.exports_stay, context=self._context), 0
        try:
            for number, step in enumerate(program):
                at = number
                self._step(model, step)
                self._check(model)
            at = len(program)
            for number in list(model.processes):
                self._kill(number)
                model.end(number)
            self._check(model)
            self._all_is_to_be_had()
        except _Broken as error:
            return Fault(at, f"{error} {self._errors.read_text()[-1500:]}".strip())
        finally:
            for number in [n for n in self._ends if n != ZYGOTE]:
                self._kill(number)
        return None

    def _step(self, model: Model, step: Step) -> None:
        allowed = [op for op in step if model.allows(op)]
        told = {op: self._before(model, op) for op in allowed}
        sent: list[tuple[Op, int]] = []
        cut_off: list[Op] = []
        for op in allowed:
            before = told[op]
            if op.what == "kill":
                continue
            if before is not None:
                sent.append((op, self._send(op, before)))
        for op in allowed:
            if op.what == "kill":
                self._kill(op.actor)
        for op, number in sent:
            killed = any(each.what == "kill" and each.actor == op.actor for each in allowed)
            answer = self._wait(op, number, may_die=killed or op.what == "exit")
            if answer is None:
                cut_off.append(op)
                continue
            if "wrong" in answer:
                raise _Broken(f"{op}: {answer['wrong']}")
            if answer["code"] == 0:
                model.did(op)
                self._after(op)
                self._check_told(answer)
            elif answer["code"] == OUT_OF_MEMORY:
                model.refused(op)
            else:
                raise _Broken(f"{op} was answered with CUresult {answer['code']}")
        for op in allowed:
            if op.what == "kill":
                for each in cut_off:
                    if each.actor == op.actor:
                        self._ended_in(model, each)
                model.did(op)

    def _before(self, model: Model, op: Op) -> tuple[dict[str, Any], list[int]] | None:
        """What is needed of another process; None: it cannot say."""
        if op.what not in ("import", "open"):
            return {}, []
        home = model.things[op.of].home
        what = "give" if op.what == "import" else "handle"
        number = self._send(Op(what, home, of=op.of), ({}, []))
        answer = self._wait(op, number, may_die=False)
        if answer is None or answer["code"]:
            return None
        return {"handle": answer.get("handle")}, self._given.pop(number, [])

    def _after(self, op: Op) -> None:
        if op.what in ("spawn", "fork"):
            self._await_peer(op.made)
        elif op.what == "exec":
            self._lose(op.actor)
            self._await_peer(op.actor)
        elif op.what == "exit":
            self._await_end(op.actor)

    def _ended_in(self, model: Model, op: Op) -> None:
        """Its process was killed: what it does may be done or not, and a child be there."""
        model.cut_off(op)
        if op.what != "fork":
            return
        if not select.select([self._forks[op.actor]], [], [], ANSWER_SECONDS)[0]:
            raise _Broken(f"process {op.made} does not begin")
        while select.select([self._listener], [], [], 0)[0]:
            self._accept()
        if op.made in self._peers:
            self._kill(op.made)

    # --- what must be so ---

    def _check(self, model: Model) -> None:
        used, (least, most) = self._used(), model.span()
        allowed = self._cap + model.uncharged()
        if used > allowed:
            raise _Broken(f"{used / MIB:g} MiB are held, {(used - allowed) / MIB:g} above the cap")
        if not least <= used <= most:
            raise _Broken(
                f"{used / MIB:g} MiB are held, by the model {least / MIB:g} to {most / MIB:g}"
            )
        charged = self._charged() if self._library else None
        if charged is not None and used > charged + model.uncharged():
            raise _Broken(f"{used / MIB:g} MiB are held, charged are {charged / MIB:g}")

    def _check_told(self, answer: dict[str, Any]) -> None:
        if (told := answer.get("told")) is None:
            return
        free, total = told
        if total != self._cap or free > total:
            raise _Broken(f"told of {total / MIB:g} MiB, {free / MIB:g} free")

    def _charged(self) -> int | None:
        file = self.box.state / "ledger"
        if not file.exists():
            return None
        slots = np.frombuffer(file.read_bytes(), np.uint8, SLOTS * SLOT_BYTES, HEADER_BYTES)
        slots = slots.reshape(SLOTS, SLOT_BYTES)
        there = slots[slots[:, :4].view(np.uint32)[:, 0] != 0]
        return int(sum(sum(struct.unpack_from("=QQ", bytes(each), HELD_AT)) for each in there))

    def _all_is_to_be_had(self) -> None:
        """The account is at nothing again: somebody new gets the whole cap."""
        number = 1 << 30
        self._call(Op("spawn", ZYGOTE, made=number))
        self._await_peer(number)
        self._call(Op("retain", number))
        pieces = 0
        while not self._call(Op("alloc", number, made=number + 1 + pieces, kib=PIECE_MIB << 10)):
            pieces += 1
        if pieces != (self._cap - self._context) // (PIECE_MIB * MIB):
            raise _Broken(f"{pieces} pieces of {PIECE_MIB} MiB are to be had at the end")
        self._kill(number)

    def _call(self, op: Op) -> int:
        answer = self._wait(op, self._send(op, ({}, [])), may_die=False)
        assert answer is not None
        return int(answer["code"])

    def _probe_exports(self) -> bool:
        """Whether what was exported stays while somebody else has it."""
        home, other, memory = 1, 2, 3
        for op in (
            Op("spawn", ZYGOTE, made=home),
            Op("spawn", ZYGOTE, made=other),
            Op("retain", home),
            Op("retain", other),
            Op("exportable", home, made=memory, kib=2048),
            Op("export", home, of=memory),
        ):
            self._call(op)
            self._after(op)
        before = self._used()
        sent = self._send(Op("give", home, of=memory), ({}, []))
        self._wait(Op("give", home), sent, may_die=False)
        taken = Op("import", other, of=memory, kib=2048)
        self._wait(taken, self._send(taken, ({}, self._given.pop(sent))), may_die=False)
        self._kill(home)
        stays = self._used() == before - self._context
        self._kill(other)
        return stays

    # --- messages ---

    def _send(self, op: Op, more: tuple[dict[str, Any], list[int]]) -> int:
        self._ids += 1
        about, files = more
        actor = ZYGOTE if op.what == "spawn" else op.actor
        body = {
            "id": self._ids,
            "what": op.what,
            "thread": op.thread,
            "made": op.made,
            "of": op.of,
            "kib": op.kib,
            **about,
        }
        peer = self._peers[actor]
        try:
            socket.send_fds(peer.socket, [json.dumps(body).encode()], files)
        except OSError:
            raise _Broken(f"process {actor} is gone before {op}") from None
        finally:
            for file in files:
                os.close(file)
        peer.waits_for.add(self._ids)
        return self._ids

    def _wait(self, op: Op, number: int, *, may_die: bool) -> dict[str, Any] | None:
        end = time.monotonic() + ANSWER_SECONDS
        actor = ZYGOTE if op.what == "spawn" else op.actor
        while number not in self._answers:
            peer = self._peers.get(actor)
            if peer is None or number not in peer.waits_for:
                if may_die:
                    return None
                if peer is None:
                    raise _Broken(f"process {actor} ended in {op}")
            if time.monotonic() > end:
                raise _Broken(f"{op} is not answered within {ANSWER_SECONDS:g} s")
            self._pump(0.05)
        return self._answers.pop(number)

    def _pump(self, seconds: float) -> None:
        by_file = {peer.socket.fileno(): number for number, peer in self._peers.items()}
        files = [*by_file, self._listener.fileno()]
        for file in select.select(files, [], [], seconds)[0]:
            if file == self._listener.fileno():
                self._accept()
                continue
            number = by_file[file]
            peer = self._peers.get(number)
            if peer is None:
                continue
            try:
                data, given, _, _ = socket.recv_fds(peer.socket, MOST_BYTES, 1)
            except ConnectionError:
                data, given = b"", []
            if not data:
                self._lose(number)
                continue
            answer = json.loads(data)
            peer.waits_for.discard(answer["id"])
            self._answers[answer["id"]] = answer
            if given:
                self._given[answer["id"]] = list(given)

    def _accept(self) -> None:
        made, _ = self._listener.accept()
        data, (forks,), _, _ = socket.recv_fds(made, MOST_BYTES, 1)
        hello = json.loads(data)
        self._close_forks(hello["actor"])
        self._forks[hello["actor"]] = forks
        if (old := self._peers.get(hello["actor"])) is not None:
            old.socket.close()
        self._peers[hello["actor"]] = _Peer(made)
        if hello["actor"] not in self._ends:  # exec keeps the process
            self._ends[hello["actor"]] = os.pidfd_open(hello["pid"])

    def _close_forks(self, number: int) -> None:
        if (file := self._forks.pop(number, None)) is not None:
            os.close(file)

    def _lose(self, number: int) -> None:
        if (peer := self._peers.pop(number, None)) is not None:
            peer.socket.close()

    def _await_peer(self, number: int) -> None:
        end = time.monotonic() + ANSWER_SECONDS
        while number not in self._peers:
            if time.monotonic() > end:
                raise _Broken(f"process {number} does not begin")
            self._pump(0.05)

    def _kill(self, number: int) -> None:
        if number in self._ends:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ends[number], signal.SIGKILL)
            self._await_end(number)

    def _await_end(self, number: int) -> None:
        """Until the kernel has taken back all that a process had."""
        file = self._ends.pop(number)
        try:
            if not select.select([file], [], [], ANSWER_SECONDS)[0]:
                raise _Broken(f"process {number} does not end")
        finally:
            os.close(file)
        self._lose(number)


class _Used:
    """What the driver says that a device holds, asked by a process outside of the container."""

    def __init__(self, gpu: FakeGPU) -> None:
        command = [sys.executable, "-m", "tests.native.caps_programs.witness"]
        self._process = subprocess.Popen(
            command, env=gpu.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
