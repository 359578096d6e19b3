"""What a dump holds, as it is shown beside the plan that is made of it."""

from dataclasses import replace
from pathlib import Path

from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model.decision import Reservation, ReservationReason
from gpu_scheduler.core.model.request import Gang, Topology
from gpu_scheduler.core.packing.target_workload import DEFAULT
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import dump_of, written
from gpu_scheduler.simulate.dumped_tables import tables
from gpu_scheduler.simulate.replay import replay

WHOLE, HALF = pod_shape(1000), pod_shape(500)


def site() -> PlanInput:
    """Two nodes of four GPUs: one is not ready, and a gang waits for its last member."""
    case = Play((4, 4), projects(project("a", 4000), project("b", 0)))
    case.place(Pod("one", "a", HALF), "n0/0", milli=500)
    case.place(Pod("two", "b", HALF), "n0/0", milli=500)
    case.place(Pod("big", "a", WHOLE), "n0/1", "n0/2")
    case.wait(Pod("late", "a", WHOLE, priority=80, created=940.0))
    given = case.given()
    cluster = given.cluster
    cluster.nodes = [cluster.nodes[0], replace(cluster.nodes[1], unschedulable="is not ready")]
    cluster.nodes[1] = replace(cluster.nodes[1], failed_isolation=("interposer",))
    cluster.dev_healthy = list(cluster.dev_healthy)
    cluster.dev_healthy[3] = False
    cluster.dev_trouble = {3: "is unhealthy: XID 79"}
    (job,) = given.jobs
    gang = Gang(1, 4, topology=Topology("rack"), nodes=frozenset({"n0"}))
    pod = job.pods[0].uid
    kept = Reservation(pod, job.key, "n0", ReservationReason.FREED)
    running = given.running_pods.all()
    devices = next(each.devices for each in running if each.name == "big")
    return replace(
        given, jobs=[replace(job, gang=gang)], reservations=[replace(kept, devices=devices)]
    )


def test_gpus_are_shown_with_who_holds_them_and_what_is_wrong_with_them() -> None:
    shown = [" ".join(line.split()) for line in tables(site()).splitlines()]
    model = "A100-PCIE-40GB"
    assert shown[:2] == ["As of the dump: 8 GPUs", "NODE GPUS MODEL FREE MIB FREE HELD BY"]
    assert f"n0 0 {model} 0 0 ns/one (0.5); ns/two (0.5)" in shown
    assert f"n0 1,2 {model} 0 0 ns/big (1); kept for ns/late: freed" in shown
    assert f"n0 3 {model} 1 40448 is unhealthy: XID 79" in shown
    (closed,) = [line for line in shown if line.startswith("n1 ")]
    assert closed.startswith(f"n1 0,1,2,3 {model} 1 40448 the node is not ready; ")
    assert closed.endswith(" of isolation: interposer")


def test_what_waits_is_shown_with_its_gang() -> None:
    shown = " ".join(tables(site()).partition("Its queue")[2].split())
    assert shown == (
        ": 1 job ns/late: priority 80, waits since 1970-01-01T00:15:40Z, 1 pod; 1 of a gang of 4 "
        "is missing, in one rack; the others run on n0"
    )


def test_a_dump_is_shown_with_its_plan(tmp_path: Path) -> None:
    case = Play((2,), projects(project("a", 0), project("b", 2000)))
    for number in range(2):
        case.place(Pod(f"v{number}", "a", WHOLE), f"n0/{number}")
    case.wait(Pod("w", "b", WHOLE))
    file = tmp_path / "dump.json"
    file.write_bytes(b"".join(written(dump_of(case.given(), DEFAULT))))
    shown = replay(file, as_json=False)
    assert "Would give way: 1 pod" in shown
    assert "ns/w: WaitingForGPU" in shown
    assert "As of the dump: 2 GPUs" in shown
