from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.agent.builders import container, seen, use

from gpu_scheduler.agent.isolation import verdict
from gpu_scheduler.agent.sampler import DeviceProcess
from gpu_scheduler.agent.usage import Beside


def with_library(*pids: int) -> Callable[[DeviceProcess], bool]:
    return lambda process: process.pid in pids


@pytest.mark.parametrize(
    ("promised", "kernel", "pids", "loaded", "isolation"),
    [
        (True, False, (), (), "interposer"),
        (True, False, (1, 2), (1, 2), "interposer"),
        (True, False, (1, 2), (1,), "unprotected"),
        (True, False, (1, 2), (), "unprotected"),
        (True, True, (1, 2), (), "kernel"),
        (False, False, (1, 2), (), "framework"),
        (False, True, (1,), (), "kernel"),
    ],
)
def test_the_layer_in_place(
    promised: bool,
    kernel: bool,
    pids: tuple[int, ...],
    loaded: tuple[int, ...],
    isolation: str,
) -> None:
    found = verdict(
        use(*(seen(pid) for pid in pids), of=container(promised=promised)),
        kernel=kernel,
        has_library=with_library(*loaded),
    )
    assert found.isolation == isolation
    assert (found.message is not None) == (isolation == "unprotected")


def test_the_message_names_the_process() -> None:
    found = verdict(use(seen(77, command="evader")), kernel=False, has_library=with_library())
    assert "process 77 (evader)" in (found.message or "")
    assert "without libgpucap" in (found.message or "")


def test_what_cannot_be_looked_into_is_not_trusted() -> None:
    hidden = verdict(use(seen(77)), kernel=False, has_library=lambda process: None)
    assert hidden.isolation == "unprotected"
    assert "cannot be looked into" in (hidden.message or "")
    gone = verdict(use(DeviceProcess(77, 5, None)), kernel=False, has_library=lambda process: None)
    assert gone.isolation == "unprotected"


@pytest.mark.parametrize("kernel", [True, False])
def test_a_process_of_an_ephemeral_container_is_told_of_whatever_holds_the_others(
    kernel: bool,
) -> None:
    near = (Beside("GPU-a", "debugger", seen(5)), Beside("GPU-a", "debugger", seen(6)))
    found = verdict(
        replace(use(seen(77)), beside=near), kernel=kernel, has_library=with_library(77)
    )
    assert found.isolation == "unprotected"
    message = found.message or ""
    assert "ephemeral container debugger: process 5 (python) and 1 more processes" in message
    assert "on GPU-a of container main, where no cap holds it" in message
