"""A folder with pretended devices: its configuration, its failures, its state, and its processes.

gpu = FakeGPU(folder, build, devices=2)
gpu.set(gpu.uuids[0], "lost", 1)
gpu.used_mib()                          # of device 0, in all processes
gpu.call("tests.native.test_x:holds", 5)  # a function, in a process of its own
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.native.build import SANITIZERS, NativeBuild

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=97", "--trace-children=yes")
CROWDS = ("crowd", "killrounds")  # a thousand processes, thousands one after the other
NO_DEEPBIND = "RTLD_DEEPBIND flag which is incompatible with sanitizer runtime"


def words_of(command: Sequence[str | Path]) -> list[str]:
    """The command line; with NATIVE_VALGRIND a C program of the tests runs under valgrind.

    But one with a sanitizer, which cannot.
    """
    words = [str(word) for word in command]
    program = Path(words[0])
    checked = "NATIVE_VALGRIND" in os.environ and program.parent.name == "programs"
    checked = checked and program.name not in CROWDS and program.parts[-3] not in SANITIZERS
    return [*(VALGRIND if checked else ()), *words]


def uuid_of(index: int) -> str:
    """The UUID of the device with this index."""
    return f"GPU-{index:08x}-0000-4000-8000-{index:012x}"


@dataclass(slots=True)
class FakeGPU:
    """Devices of one size in one folder.

    Attributes:
        folder: FAKEGPU_DIR.
        build: where the pretended driver is.
        devices: how many.
        total_mib, reserved_mib: memory of each device, and what the driver keeps of it.
        options: more lines of the configuration, for example {"memory_limits": 1}.
        capability: the devices' compute capability.
    """

    folder: Path
    build: NativeBuild
    devices: int = 1
    total_mib: int = 40960
    reserved_mib: int = 512
    options: Mapping[str, object] = field(default_factory=dict)
    capability: str = "8.0"

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)
        self.configure(**self.options)

    @property
    def uuids(self) -> list[str]:
        """The devices' UUIDs, by index."""
        return [uuid_of(index) for index in range(self.devices)]

    @property
    def usable_mib(self) -> int:
        """What programs can use of one device."""
        return self.total_mib - self.reserved_mib

    def configure(self, **options: object) -> None:
        """Write the configuration; processes that started before keep what they read."""
        lines = {"driver": "570.86.15", "cuda": 12080, "context_mib": 300, **options}
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        for index, uuid in enumerate(self.uuids):
            memory = f"{self.total_mib} {self.reserved_mib}"
            text += f"device {index} {uuid} NVIDIA_A100-PCIE-40GB {memory} {self.capability}\n"
        (self.folder / "config").write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process that uses these devices."""
        return {
            **os.environ,
            **self.build.environment,
            "FAKEGPU_DIR": str(self.folder),
            "FAKEGPU_DEV": str(self.folder / "dev"),  # not there: all devices
            "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(
        self, command: Sequence[str | Path], *, seconds: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, with its output as text."""
        done = subprocess.run(
            words_of(command),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if self.build.sanitizer and NO_DEEPBIND in done.stdout + done.stderr:
            pytest.skip(f"a sanitizer's runtime refuses RTLD_DEEPBIND: {command[0]}")
        return done

    def start(self, command: Sequence[str | Path], **environment: str) -> subprocess.Popen[str]:
        """Start a program; its output can be read and its input written."""
        return subprocess.Popen(
            words_of(command),
            env={**self.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, function: str, *arguments: object, **environment: str) -> Any:
        """Run ``module:function(*arguments)`` in a process of its own and return its result.

        Raises:
            AssertionError: it did not end well; the message has what it said.
        """
        done = self.run(self.child(function, *arguments), **environment)
        assert done.returncode == 0, f"{function}: exit {done.returncode}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def start_call(
        self, function: str, *arguments: object, **environment: str
    ) -> subprocess.Popen[str]:
        """Start ``module:function(*arguments)`` in a process of its own."""
        return self.start(self.child(function, *arguments), **environment)

    @staticmethod
    def child(function: str, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "tests.native.child", function, json.dumps(arguments)]

    def control(self, *words: object) -> str:
        """Run fakegpuctl.

        Raises:
            AssertionError: it failed.
        """
        done = self.run([self._control, *(str(word) for word in words)])
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def _control(self) -> Path:
        return self.build.fakegpu / "fakegpuctl"

    def set(self, uuid: str, name: str, number: int) -> None:
        """Set a figure of a device: lost, next-error, ecc-uncorrected, gpu-percent, …"""
        self.control("set", uuid, name, number)

    def load(self, device: str | int, **figures: object) -> None:
        """Set what a device does: ``load(0, util=70, throttle="thermal", sm_clock=1200)``."""
        words = [
            word
            for name, value in figures.items()
            for word in (f"--{name.replace('_', '-')}", value)
        ]
        self.control("load", device, *words)

    def play(self, device: str | int, schedule: str) -> None:
        """Let a device play a schedule, see native/fakegpu/README.md."""
        path = self.folder / f"schedule-{device}"
        path.write_text(schedule)
        self.control("play", device, path)

    def xid(self, uuid: str, code: int) -> None:
        """Let a device have an XID event."""
        self.control("xid", uuid, code)

    def state(self) -> dict[str, Any]:
        """Devices, processes and limits, after forgetting the dead."""
        found: dict[str, Any] = json.loads(self.control("show"))
        return found

    @contextmanager
    def locked(self) -> Iterator[Callable[[], dict[str, Any]]]:
        """The pretended driver's lock, so that nobody who is stopped meanwhile has it.

        What comes is called once: it lets the lock go and gives what ``state`` gives.
        """
        control = self.start([self._control, "show", "--wait"])
        try:
            assert control.stdout is not None
            control.stdout.readline()
            yield lambda: json.loads(control.communicate("\n")[0])
        finally:
            control.kill()
            control.communicate()

    def used_mib(self, index: int = 0) -> float:
        """What all processes hold of a device."""
        device = self.state()["devices"][index]
        held: int = device["used"] - device["beside"]
        return held / MIB

    def peak_mib(self, index: int = 0) -> float:
        """The most that all processes ever held of a device, if only for a moment."""
        peak: int = self.state()["devices"][index]["peak"]
        return peak / MIB
