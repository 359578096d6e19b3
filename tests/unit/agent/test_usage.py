from dataclasses import replace

import msgspec
import pytest
from tests.unit.agent.builders import (
    CONTAINER,
    HOST,
    OTHER_POD,
    POD,
    cgroup,
    container,
    sample,
    seen,
)
from tests.unit.agent.fake_driver import MIB, gpu

from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.sampler import DeviceProcess
from gpu_scheduler.agent.usage import Surroundings, Usage, Use, usage
from gpu_scheduler.api.orders import Neighbour

AROUND = Surroundings(daemons={"nvidia-persiste"}, own_pod="own", own_cgroup="0::/\n")


def found(
    *on_first: DeviceProcess,
    on_second: tuple[DeviceProcess, ...] = (),
    ours: tuple[GpuContainer, ...] | None = None,
    others: dict[str, Neighbour] | None = None,
) -> Usage:
    pods = {POD: (container(),) if ours is None else ours}
    return usage(sample(*on_first, on_second=on_second), pods, others or {}, AROUND)


def names(result: Usage, index: int = 0) -> list[str]:
    return [each.name for each in result.foreign.get(gpu(index), [])]


def test_a_containers_processes_are_summed_up_per_device() -> None:
    result = found(seen(1, 1000), seen(2, 500))
    (use,) = result.containers
    assert [(each.uuid, each.used_mib) for each in use.uses] == [(gpu(0), 1500)]
    assert not result.foreign


def test_a_container_without_processes_uses_nothing() -> None:
    (use,) = found().containers
    assert use.uses[0].used_mib == 0


@pytest.mark.parametrize(
    ("amounts", "used"), [((None,), None), ((None, 100), 100), ((None, None), None), ((1,), 1)]
)
def test_what_the_driver_does_not_know_is_not_nought(
    amounts: tuple[int | None, ...], used: int | None
) -> None:
    processes = tuple(seen(n, mib) for n, mib in enumerate(amounts))
    assert Use(gpu(0), 1000, processes).used_mib == used


def test_used_memory_is_rounded_up() -> None:
    odd = DeviceProcess(1, MIB + 1, seen().process)
    assert Use(gpu(0), 1000, (odd,)).used_mib == 2


def test_a_device_that_was_not_granted_makes_the_process_foreign() -> None:
    result = found(on_second=(seen(1, 1000),))
    assert names(result, 1) == ["python, pod team-a/train-0: not its device"]
    assert result.containers[0].uses[0].used_mib == 0


def test_devices_by_index_from_before_the_agent_are_understood() -> None:
    result = found(seen(1, 1000), ours=(container(caps={"0": 500}),))
    assert [(u.uuid, u.cap_mib, u.used_mib) for u in result.containers[0].uses] == [
        (gpu(0), 500, 1000)
    ]
    assert not result.foreign


def test_of_two_containers_the_id_decides() -> None:
    first = container(container_id="a" * 64)
    second = container(container_id=CONTAINER, index=1)
    result = found(seen(1, 1000), ours=(first, second))
    assert [use.uses[0].used_mib for use in result.containers] == [0, 1000]


def test_a_process_is_the_only_containers_before_its_id_is_known() -> None:
    result = found(seen(1, 1000), ours=(container(container_id=""),))
    assert result.containers[0].uses[0].used_mib == 1000


def test_another_container_of_the_pod_is_a_stranger_on_the_device() -> None:
    result = found(seen(1, in_cgroup=cgroup(container="e" * 64)))
    assert names(result) == ["python, pod team-a/train-0: not its device"]


def test_an_ended_pods_processes_are_neither_used_nor_foreign() -> None:
    result = found(seen(), ours=(container(ended=True),))
    assert result.containers == ()
    assert not result.foreign


@pytest.mark.parametrize(
    ("process", "name"),
    [
        (seen(in_cgroup=HOST, command="python"), "python"),
        (DeviceProcess(1, 5, None), "(not in /proc)"),
        (seen(in_cgroup=cgroup(OTHER_POD)), "python, pod team-b/x (nvidia.com/gpu)"),
        (seen(in_cgroup=cgroup("7" * 32)), f"python, pod with UID {'7' * 32}"),
    ],
)
def test_processes_of_no_allocation_are_named(process: DeviceProcess, name: str) -> None:
    assert names(
        found(process, others={OTHER_POD: Neighbour(OTHER_POD, "team-b", "x", True, True)})
    ) == [name]


def test_the_drivers_daemons_are_no_strangers() -> None:
    daemon = "nvidia-persiste"
    assert not found(seen(in_cgroup=HOST, command=daemon)).foreign
    others = {OTHER_POD: Neighbour(OTHER_POD, "kube-system", "dcgm")}
    assert not found(seen(in_cgroup=cgroup(OTHER_POD), command=daemon), others=others).foreign


def test_in_a_projects_namespace_a_daemons_name_proves_nothing() -> None:
    others = {OTHER_POD: Neighbour(OTHER_POD, "team-a", "sly", tenant=True)}
    result = found(seen(in_cgroup=cgroup(OTHER_POD), command="nvidia-persiste"), others=others)
    assert names(result) == ["nvidia-persiste, pod team-a/sly"]


@pytest.mark.parametrize("text", ["0::/\n", "0::/../cri-containerd-x.scope\n"])
def test_the_agents_own_pod_is_no_stranger(text: str) -> None:
    assert not found(seen(in_cgroup=text)).foreign


@pytest.mark.parametrize("text", ["0::/../../x.slice\n", "0::/../../..\n", "0::/user.slice\n"])
def test_a_process_outside_of_the_agents_pod_is(text: str) -> None:
    assert names(found(seen(in_cgroup=text))) == ["python"]


def test_foreign_memory_is_told_in_coarse_steps() -> None:
    def told(mib: int | None) -> int | None:
        return found(seen(mib=mib, in_cgroup=HOST)).foreign[gpu(0)][0].used_mib

    assert [told(mib) for mib in (None, 0, 1, 64, 65)] == [None, 0, 64, 64, 128]


def test_a_device_that_does_not_answer_leaves_its_use_unknown() -> None:
    silent = replace(sample().devices[0], readable=False)
    shown = replace(sample(), devices=(silent, sample().devices[1]))
    (use,) = usage(shown, {POD: (container(),)}, {}, AROUND).containers
    assert use.uses[0].used_mib is None
    (gone,) = usage(replace(sample(), devices=()), {POD: (container(),)}, {}, AROUND).containers
    assert gone.uses[0].used_mib is None


EPHEMERAL = "e" * 64


def debugged(**more: str) -> GpuContainer:
    """Our container, and beside it one that somebody put into the pod."""
    ours = container(**more)
    pod = msgspec.structs.replace(ours.pod, ephemeral={EPHEMERAL: "debugger"})
    return replace(ours, pod=pod)


def test_a_process_of_an_ephemeral_container_is_beside_the_one_whose_device_it_is_on() -> None:
    result = found(seen(1), seen(2, in_cgroup=cgroup(container=EPHEMERAL)), ours=(debugged(),))
    (use,) = result.containers
    assert [p.pid for p in use.processes] == [1], "it is not charged for it"
    assert [(each.name, each.uuid, each.gpu_process.pid) for each in use.beside] == [
        ("debugger", gpu(0), 2)
    ]
    assert names(result) == ["python, ephemeral container debugger of team-a/train-0"]


def test_an_ephemeral_container_is_not_taken_for_one_whose_id_is_not_known_yet() -> None:
    ours = (debugged(container_id=""),)
    (use,) = found(seen(2, in_cgroup=cgroup(container=EPHEMERAL)), ours=ours).containers
    assert use.processes == () and len(use.beside) == 1


def test_on_a_device_that_its_pod_does_not_hold_it_is_beside_nobody() -> None:
    result = found(on_second=(seen(2, in_cgroup=cgroup(container=EPHEMERAL)),), ours=(debugged(),))
    assert result.containers[0].beside == () and len(names(result, 1)) == 1
