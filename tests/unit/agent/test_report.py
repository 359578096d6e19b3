import json

from tests.unit.agent.builders import POD, container, sample, seen, use
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.isolation import IsolationVerdict
from gpu_scheduler.agent.poll import Poll
from gpu_scheduler.agent.report import status, unreadable
from gpu_scheduler.agent.selftest import Layer
from gpu_scheduler.agent.selftest import verdict as self_test_verdict
from gpu_scheduler.agent.usage import ContainerUse, Usage
from gpu_scheduler.agent.watchdog import OverCapContainer
from gpu_scheduler.api.gpunode import ForeignProcess, GPUNodeStatus

PASSED = self_test_verdict(Layer("interposer", "passed", "cap 256 MiB"))


def reported(
    *uses: ContainerUse,
    over: OverCapContainer | None = None,
    found: IsolationVerdict | None = None,
    foreign: list[ForeignProcess] | None = None,
) -> GPUNodeStatus:
    look = Poll(
        sample=sample(),
        usage=Usage(tuple(uses), {}),
        over={(POD, 0): over} if over else {},
        verdicts={use.key: found or IsolationVerdict("interposer") for use in uses},
        killed=(),
        contexts_mib={},
        compute_percent={},
        seconds=0.0,
    )
    return status(look, {gpu(1): foreign} if foreign else {}, PASSED)


def test_what_is_well_has_no_message() -> None:
    found = reported(use(seen())).to_json()
    assert found["isolation"] == "interposer"
    assert found["selfTest"] == "interposer passed: cap 256 MiB"
    assert (found["gpus"], found["driverVersion"]) == (2, "570.86.15")
    assert [d["usableMiB"] for d in found["devices"]] == [40448, 40448]
    assert found["containers"] == [
        {
            "namespace": "team-a",
            "pod": "train-0",
            "uid": POD,
            "container": 0,
            "isolation": "interposer",
        }
    ]


def test_memory_that_moves_is_no_news() -> None:
    first, second = reported(use(seen(mib=1000))), reported(use(seen(mib=1064)))
    assert first == second


def test_over_its_cap_and_unprotected_are_both_told() -> None:
    over = OverCapContainer(container(), "2026-01-01T00:00:00Z", "holds 30000 MiB", (1,))
    (found,) = (
        reported(use(), over=over, found=IsolationVerdict("unprotected", "no library")).containers
        or []
    )
    assert found.over_cap_since == "2026-01-01T00:00:00Z"
    assert found.message == "holds 30000 MiB; no library"
    assert found.isolation == "unprotected"


def test_foreign_processes_are_the_devices() -> None:
    stranger = ForeignProcess(pid=5, name="x", used_mib=64)
    first, second = reported(foreign=[stranger]).devices
    assert first.foreign_processes is None
    assert second.foreign_processes == [stranger]
    assert second.healthy, "a stranger does not make a device sick"


def test_the_order_of_containers_does_not_depend_on_the_watch() -> None:
    first, second = use(of=container(uid="a")), use(of=container(uid="b"))
    assert reported(first, second) == reported(second, first)


def test_an_unreadable_driver_leaves_what_was_known_unhealthy() -> None:
    known = reported(use(seen()))
    found = unreadable(known, "NVML: Driver Not Loaded")
    assert [(d.healthy, d.message) for d in found.devices] == [
        (False, "NVML: Driver Not Loaded")
    ] * 2
    assert found.containers == known.containers
    assert all(d.healthy for d in known.devices)


def test_the_status_fits_the_object() -> None:
    many = [use(of=container(uid=f"{n:036}")) for n in range(1100)]
    found = reported(*many)
    assert len(found.containers or ()) == 1024
    assert len(json.dumps(found.to_json())) < 1_000_000, "etcd takes 1.5 MB"
