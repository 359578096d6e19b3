from pathlib import Path

import pytest
from tests.unit.agent.builders import CONTAINER, container, seen, use
from tests.unit.agent.fake_driver import MIB, gpu

from gpu_scheduler.agent.kernel_limits import (
    LIMIT_MAX,
    KernelLimits,
    LimitError,
    NvmlLimits,
    unavailable,
)
from gpu_scheduler.agent.kernel_start import kernel_layer
from gpu_scheduler.agent.usage import ContainerUse

LEAF = f"kubepods/pod1/{CONTAINER}"


class FakeLimits:
    """The driver's table of limits."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, str], int] = {}
        self.sets: list[int] = []
        self.error: LimitError | None = None
        self.rounds_to: int | None = None

    def set(self, uuid: str, folder: Path, hard_bytes: int) -> None:
        if self.error is not None:
            raise self.error
        self.sets.append(hard_bytes)
        self.table[uuid, folder.name] = self.rounds_to or hard_bytes

    def hard_bytes(self, uuid: str, folder: Path) -> int:
        return self.table.get((uuid, folder.name), LIMIT_MAX)


class Stage:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.limits = FakeLimits()
        self.kernel = KernelLimits(self.limits, root)
        self.create(LEAF)

    def create(self, leaf: str) -> None:
        (self.root / leaf).mkdir(parents=True)

    def holds(self, shown: ContainerUse) -> bool:
        self.kernel.update([shown])
        return self.kernel.holds(shown)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_cap_is_set_on_the_leaf_before_the_first_process(stage: Stage) -> None:
    assert stage.holds(use())
    assert stage.limits.table == {(gpu(0), CONTAINER): 20000 * MIB}


def test_it_is_set_once(stage: Stage) -> None:
    for _ in range(5):
        assert stage.holds(use(seen()) if stage.limits.sets else use())
    assert len(stage.limits.sets) == 1


def test_a_limit_that_came_after_a_process_is_not_relied_on(stage: Stage) -> None:
    assert not stage.holds(use(seen()))
    assert stage.limits.sets, "late is better than never"


def test_before_the_cgroup_exists_nothing_holds(tmp_path: Path) -> None:
    kernel = KernelLimits(FakeLimits(), tmp_path)
    kernel.update([use()])
    assert not kernel.holds(use())


def test_a_changed_cap_is_set_anew(stage: Stage) -> None:
    stage.holds(use())
    assert stage.holds(use(seen(), cap_mib=5000))
    assert stage.limits.table[gpu(0), CONTAINER] == 5000 * MIB


def test_a_restarted_container_gets_its_limit_too(stage: Stage) -> None:
    stage.holds(use())
    again = "d" * 64
    stage.create(f"kubepods/pod1/{again}")
    assert stage.holds(use(of=container(container_id=again)))
    assert stage.limits.table[gpu(0), again] == 20000 * MIB


def test_a_restarted_agent_relies_on_what_was_set_in_time(stage: Stage) -> None:
    stage.holds(use())
    stage.kernel = KernelLimits(stage.limits, stage.root)
    assert stage.holds(use(seen()))


def test_a_driver_that_refuses_or_reads_back_something_else_holds_nothing(stage: Stage) -> None:
    stage.limits.error = LimitError("NVML error 4")
    assert not stage.holds(use())
    stage.limits.error = None
    stage.limits.rounds_to = 1
    assert not stage.holds(use())
    stage.limits.rounds_to = None
    assert stage.holds(use())


@pytest.mark.parametrize(
    ("version", "v2", "mig", "bound", "why"),
    [
        ("615.71.09", True, False, True, None),
        ("700.1", True, False, True, None),
        ("614.99", True, False, True, "older than r615"),
        ("570.86.15", True, False, True, "older than r615"),
        ("", True, False, True, "unknown"),
        ("615.71.09", False, False, True, "no cgroup v2"),
        ("615.71.09", True, True, True, "MIG"),
        ("615.71.09", True, False, False, "lacks"),
    ],
)
def test_where_there_are_no_limits_it_says_why(
    tmp_path: Path, version: str, v2: bool, mig: bool, bound: bool, why: str | None
) -> None:
    if v2:
        (tmp_path / "cgroup.controllers").touch()
    limits = FakeLimits() if bound else None
    found = unavailable(version, mig=mig, root=tmp_path, limits=limits)
    assert found is None if why is None else why in (found or "")


def test_no_nvml_no_limits() -> None:
    with pytest.raises(LimitError):
        NvmlLimits("libno-such-library.so.1")
    with pytest.raises(LimitError, match="nvmlDeviceSetMemoryLimits_v1"):
        NvmlLimits("libc.so.6")


def test_the_self_test_limits_the_agents_own_cgroup_and_lifts_it_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 345)
    (stage.root / LEAF / "cgroup.procs").write_text("345\n")
    layer = kernel_layer(
        stage.limits, stage.root, gpu(0), lambda how, env: {"got_mib": {"dlsym": 240}}
    )
    assert layer.result == "passed"
    assert stage.limits.sets == [256 * MIB, LIMIT_MAX]
    outside = kernel_layer(stage.limits, stage.root / "none", gpu(0), lambda how, env: {})
    assert outside.result == "untested"
