"""Every reason and its sentence. Reasons are API: users read and script against them."""

from dataclasses import replace

import pytest
from tests.unit.builders import (
    A30,
    GIB,
    ClusterBuilder,
    dell_saas,
    dell_selfhosted,
    job,
    pod_shape,
    project,
    projects,
)

from gpu_scheduler.core.model.cluster import Taint
from gpu_scheduler.core.model.decision import DeviceAllocation, Reason, Wait
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    JobKey,
    NodeFilter,
    NodeSelectorTerm,
    PodShape,
    PodUID,
    Project,
    ProjectName,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.running_pods import Roll, RunningPod
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput


def why(
    builder: ClusterBuilder,
    what: PodShape,
    team: Project | None = None,
    avoid: tuple[str, ...] = (),
) -> tuple[Reason, str]:
    """Reason and message of a lone pod that must not start."""
    result = plan(
        PlanInput(builder.obj(), projects(team or project()), [job("j", what, avoid=avoid)])
    )
    assert result.assignments == ()
    (wait,) = result.waits
    return wait.reason, wait.message


SELECTOR = NodeFilter(selector=(("disk", "ssd"),))
AFFINITY = NodeFilter(terms=(NodeSelectorTerm(labels=(Requirement("zone", "In", ("b",)),)),))
PAIR = [DeviceRequest(0, 1, 700), DeviceRequest(1, 1, 700), DeviceRequest(2, 1, 700)]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            pod_shape(500, models=("h100", "v100")),
            "needs 0.5 of a GPU (h100 or v100); no GPU is of that model;"
            " models in the cluster: NVIDIA-A100-PCIE-40GB, NVIDIA-A30",
        ),
        (
            pod_shape(1000, count=4),
            "needs 4 GPUs; nodes give 2 GPUs; 4 is not possible on any node",
        ),
        (
            pod_shape(1000, count=2, models=("a30",)),
            "needs 2 GPUs (a30); nodes give 1 A30; 2 is not possible on any node",
        ),
        (
            pod_shape(mib=81_920),
            "needs 81920 MiB of a GPU; the largest such GPU has 40448 MiB usable",
        ),
        (
            pod_shape(mib=30_000, models=("a30",)),
            "needs 30000 MiB of a GPU (a30); the largest such GPU has 24062 MiB usable",
        ),
        (
            pod_shape(500, min_compute=(9, 0)),
            "needs 0.5 of a GPU; compute capability 9.0 is asked for, the highest there is 8.0",
        ),
        (
            pod_shape(containers=PAIR),
            "needs 0.7 of a GPU + 0.7 of a GPU + 0.7 of a GPU; no node can hold these together,"
            " even when empty: at most 2 GPUs of that kind on a node",
        ),
        (
            pod_shape(500, cpu_milli=129_000),
            "needs 129 CPU; the largest of the 4 nodes that it may use has 128",
        ),
        (
            pod_shape(500, memory_bytes=513 * GIB, models=("a30",)),
            "needs 513Gi memory; the largest of the 1 node that it may use has 512Gi",
        ),
        (
            pod_shape(500, where=SELECTOR),
            "needs 0.5 of a GPU; of 4 nodes with such GPUs: 4 without the labels of the node"
            " selector (disk=ssd)",
        ),
        (
            pod_shape(500, where=AFFINITY, models=("a30",)),
            "needs 0.5 of a GPU (a30); of 1 node with such GPUs: 1 outside the required node"
            " affinity",
        ),
    ],
)
def test_unsatisfiable_names_what_is_missing(what: PodShape, message: str):
    assert why(dell_selfhosted(), what) == (Reason.UNSATISFIABLE, message)


def test_a_single_gpu_is_no_plural():
    builder = ClusterBuilder().node("a", 1)
    assert why(builder, pod_shape(1000, count=3)) == (
        Reason.UNSATISFIABLE,
        "needs 3 GPUs; nodes give 1 GPU; 3 is not possible on any node",
    )


def test_unsatisfiable_says_when_there_are_no_gpus_at_all():
    half = pod_shape(500)
    assert why(ClusterBuilder().node("cpu", 0), half) == (
        Reason.UNSATISFIABLE,
        "needs 0.5 of a GPU; the cluster has no GPU nodes",
    )
    assert why(ClusterBuilder(), half)[1] == "needs 0.5 of a GPU; the cluster has no nodes"


def test_unsatisfiable_counts_the_causes_per_node():
    builder = (
        ClusterBuilder()
        .node("a", taints=(Taint("team", "b", "NoSchedule"),), labels={"disk": "ssd"})
        .node("b", taints=(Taint("drain", "", "NoExecute"),), labels={"disk": "ssd"})
        .node("c")
        .node("d")
    )
    assert why(builder, pod_shape(500, where=SELECTOR))[1] == (
        "needs 0.5 of a GPU; of 4 nodes with such GPUs:"
        " 2 without the labels of the node selector (disk=ssd),"
        " 1 with the taint drain:NoExecute, not tolerated,"
        " 1 with the taint team=b:NoSchedule, not tolerated"
    )


def test_unsatisfiable_when_no_node_has_everything_together():
    builder = ClusterBuilder().node("a", cpu_milli=8000).node("b", memory_bytes=8 * GIB)
    assert why(builder, pod_shape(500, cpu_milli=16_000, memory_bytes=16 * GIB)) == (
        Reason.UNSATISFIABLE,
        "needs 0.5 of a GPU, 16 CPU and 16Gi memory; no single node has all of that",
    )


@pytest.mark.parametrize(
    ("team", "message"),
    [
        (
            project(quota_milli=1000, limit_milli=1500),
            "needs 2 GPUs; project team-a can never hold more than its limit 1.5",
        ),
        (
            project(quota_milli=1000, weight=0),
            "needs 2 GPUs; project team-a can never hold more than its quota 1"
            " (weight 0: it never borrows)",
        ),
    ],
)
def test_exceeds_quota(team: Project, message: str):
    assert why(dell_saas(), pod_shape(1000, count=2), team) == (Reason.EXCEEDS_QUOTA, message)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            pod_shape(1000, count=9),
            "needs 9 GPUs; project team-a can never hold more than its limit 1.5; nor could any"
            " node hold it: nodes give 2 GPUs; 9 is not possible on any node",
        ),
        (
            pod_shape(1000, count=2, models=("h100",)),
            "needs 2 GPUs (h100); project team-a can never hold more than its limit 1.5; nor could"
            " any node hold it: no GPU is of that model; models in the cluster:"
            " NVIDIA-A100-PCIE-40GB",
        ),
        (
            pod_shape(1000, count=2, cpu_milli=1_000_000),
            "needs 2 GPUs; project team-a can never hold more than its limit 1.5; nor could any"
            " node hold it: needs 1000 CPU",
        ),
    ],
)
def test_what_no_node_holds_either_names_the_quota_first(what: PodShape, message: str):
    """It asks for less; no node that is added would help."""
    reason, said = why(dell_saas(), what, project(quota_milli=1000, limit_milli=1500))
    assert reason is Reason.EXCEEDS_QUOTA
    assert said.startswith(message)


def test_waiting_for_quota_names_the_limit():
    builder = dell_saas().allocated("team-a", 2500)
    assert why(builder, pod_shape(500), project(quota_milli=1000, limit_milli=2500)) == (
        Reason.WAITING_FOR_QUOTA,
        "needs 0.5 of a GPU; project team-a holds 2.5 of its limit 2.5",
    )


def test_waiting_for_quota_names_a_weight_of_zero():
    builder = dell_saas().allocated("team-a", 800)
    assert why(builder, pod_shape(500), project(quota_milli=1000, weight=0)) == (
        Reason.WAITING_FOR_QUOTA,
        "needs 0.5 of a GPU; project team-a holds 0.8 of its quota 1 (weight 0: it never borrows)",
    )


def test_waiting_for_quota_when_pods_inside_their_quota_wait():
    jobs = [
        job("pair", pod_shape(1000, count=2), project="owner"),
        job("borrow", pod_shape(500), project="guest"),
    ]
    builder = ClusterBuilder().node("a").held("a/0", 100)
    result = plan(PlanInput(builder.obj(), projects(project("owner"), project("guest", 300)), jobs))
    assert {w.job: w.message for w in result.waits}["ns/borrow"] == (
        "needs 0.5 of a GPU; project guest holds 0 of its quota 0.3 and cannot borrow now:"
        " pods inside their quota wait for the same nodes"
    )


def shredded() -> ClusterBuilder:
    """Four servers on which no device has more than 0.5 free."""
    builder = dell_saas()
    for i in range(4):
        builder.held(f"dell-{i}/0", 900).held(f"dell-{i}/1", 800)
    return builder


def test_fragmented_names_the_best_node_and_its_numbers():
    builder = dell_saas()
    for i in range(4):
        builder.held(f"dell-{i}/0", 1000).held(f"dell-{i}/1", 1000)
    cluster = builder.obj()
    cluster.free_milli[4:6] = [300, 200]
    cluster.free_mib[4:6] = [12134, 8089]
    assert why(builder, pod_shape(500)) == (
        Reason.FRAGMENTED,
        "needs 0.5 of a GPU; best node dell-2 has 0.3 free on one GPU, 0.5 in all",
    )


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            pod_shape(1000),
            "needs 1 GPU; best node dell-0 has 0 GPUs fully free, 0.3 free in all",
        ),
        (
            pod_shape(200, count=2),
            "needs 0.2 of each of 2 GPUs; best node dell-0 has that much on 1 GPU, 0.3 free in all",
        ),
        (
            pod_shape(mib=8100),
            "needs 8100 MiB of a GPU; best node dell-0 has 8090 MiB free on one GPU,"
            " 12135 MiB in all",
        ),
        (
            pod_shape(containers=[DeviceRequest(0, 1, 150), DeviceRequest(1, 1, 150)]),
            "needs 0.15 of a GPU + 0.15 of a GPU; best node dell-0 has 0.2 free on one GPU,"
            " 0.3 in all",
        ),
    ],
)
def test_fragmented_speaks_of_what_was_asked_for(what: PodShape, message: str):
    assert why(shredded(), what) == (Reason.FRAGMENTED, message)


def test_waiting_for_gpu_when_less_is_free_than_needed():
    assert why(shredded(), pod_shape(1000, count=2)) == (
        Reason.WAITING_FOR_GPU,
        "needs 2 GPUs; 1.2 GPUs are free on the 4 nodes that it may use, best node dell-0 has"
        " 0 GPUs fully free, 0.3 free in all",
    )


def test_waiting_for_gpu_when_everything_is_taken():
    builder = ClusterBuilder().node("a", 1).held("a/0", 1000)
    assert why(builder, pod_shape(500)) == (
        Reason.WAITING_FOR_GPU,
        "needs 0.5 of a GPU; no GPU is free on the 1 node that it may use",
    )


def test_waiting_for_gpu_names_unhealthy_devices_and_closed_nodes():
    builder = ClusterBuilder().node("a", 1, unhealthy=[0]).node("b", 1, unschedulable="is cordoned")
    assert why(builder.held("b/0", 900), pod_shape(500)) == (
        Reason.WAITING_FOR_GPU,
        "needs 0.5 of a GPU; no GPU is free on the 1 node that it may use; b is cordoned;"
        " 1 GPU unhealthy",
    )


def test_waiting_for_gpu_says_why_devices_are_out_of_use():
    builder = ClusterBuilder().node("a", 4, unhealthy=[0, 1, 2, 3])
    builder.obj().dev_trouble |= {
        0: "is unhealthy: XID 79",
        2: "has foreign processes: x",
    }
    assert why(builder, pod_shape(500)) == (
        Reason.WAITING_FOR_GPU,
        "needs 0.5 of a GPU; no GPU is free on the 1 node that it may use; 4 GPUs out of use:"
        " a/0 of a is unhealthy: XID 79, a/2 of a has foreign processes: x",
    )


def test_waiting_for_gpu_when_all_nodes_are_closed_and_full():
    builder = ClusterBuilder().node("a", 1, unschedulable="is not ready").held("a/0", 1000)
    assert why(builder, pod_shape(500)) == (
        Reason.WAITING_FOR_GPU,
        "needs 0.5 of a GPU; 1 node could hold it, none takes pods now; a is not ready",
    )


def test_waiting_for_resources_names_the_node_that_lacks_least():
    builder = ClusterBuilder().node("a").node("b").node("c")
    cluster = builder.obj()
    cluster.free_cpu_milli[:] = [1000, 1500, 1500]
    cluster.free_memory_bytes[0] = 3 * GIB
    assert why(builder, pod_shape(500, cpu_milli=4000, memory_bytes=16 * GIB)) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; b has the GPUs free but lacks CPU (needs 4, 1.5 free)",
    )


def test_waiting_for_resources_names_memory_storage_and_pod_slots():
    builder = ClusterBuilder().node("a", pods=7)
    cluster = builder.obj()
    cluster.free_memory_bytes[0] = 1536 << 20
    cluster.free_pods[0] = 0
    assert why(builder, pod_shape(500, memory_bytes=2 * GIB)) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; a has the GPUs free but lacks memory (needs 2Gi, 1536Mi free) and"
        " a pod slot (all 7 are taken)",
    )


def test_waiting_for_gpu_where_somebody_else_has_gpus_of_the_node():
    builder = ClusterBuilder().node("a", 2).node("b", 1).held("b/0", 1000)
    node = builder.obj().nodes[0]
    builder.obj().nodes[0] = replace(node, unschedulable="has GPUs in use by x/y", foreign=True)
    assert why(builder, pod_shape(500)) == (
        Reason.WAITING_FOR_GPU,
        "needs 0.5 of a GPU; no GPU is free on the 1 node that it may use; "
        "a has GPUs in use by x/y",
    )


def test_waiting_for_resources_when_only_closed_nodes_have_gpus_free():
    builder = dell_saas().node("open", 1)
    builder.held("open/0", 1000)
    for i, node in enumerate(builder.obj().nodes[:4]):
        builder.obj().nodes[i] = type(node)(name=node.name, unschedulable="is cordoned", pods=110)
    assert why(builder, pod_shape(500)) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; they are free only where pods cannot start now:"
        " dell-0 is cordoned, dell-1 is cordoned, dell-2 is cordoned and 1 more",
    )


def test_waiting_for_resources_names_a_node_that_is_left_out_after_a_failure():
    assert why(ClusterBuilder().node("a"), pod_shape(500), avoid=("a",)) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; they are free only where pods cannot start now:"
        " a is left out for a while, a pod of the job just failed there",
    )


def test_a_pod_without_a_gpu_waits_for_resources():
    builder = ClusterBuilder().node("a")
    builder.obj().free_cpu_milli[0] = 0
    assert why(builder, pod_shape(cpu_milli=1000)) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs no GPU; a is the closest but lacks CPU (needs 1, 0 free)",
    )


def test_a_verdict_comes_for_the_first_pod_that_waits():
    result = plan(PlanInput(dell_saas().obj(), projects(), [job("j", pod_shape(1000), 10)]))
    assert len(result.assignments) == 8
    assert [w.reason for w in result.waits] == [Reason.WAITING_FOR_GPU]


def test_positions_count_waiting_jobs_of_the_project_in_order():
    builder = ClusterBuilder().node("a", 1, A30)
    jobs = [
        job("runs", pod_shape(1000), priority=99),
        job("second", pod_shape(1000), created=2),
        job("first", pod_shape(1000), created=1),
        job("other", pod_shape(1000), project="b", created=0),
    ]
    result = plan(PlanInput(builder.obj(), projects(project(), project("b", 0)), jobs))
    assert {w.job: w.position for w in result.waits} == {
        "ns/first": 1,
        "ns/second": 2,
        "ns/other": 1,
    }


def test_the_same_state_gives_the_same_sentence_in_the_next_cycle():
    def waits(after: bool) -> tuple[Wait, ...]:
        jobs = [job("fills", pod_shape(700), 8), job("waits", pod_shape(500), created=1)]
        builder = dell_saas()
        if after:
            for device in builder.obj().dev_id:
                builder.held(device, 700, "team-a")
            jobs = jobs[1:]
        return plan(PlanInput(builder.obj(), projects(), jobs)).waits

    assert waits(after=False) == waits(after=True)


def test_what_holds_a_projects_share_adds_up_while_some_of_it_is_only_placed():
    builder = (
        ClusterBuilder().node("a", gpus=4).held("a/0", 250, "team-a").held("a/1", 750, "team-a")
    )
    devices = (DeviceAllocation(0, "a/0", 250, 10112),)
    wide = RunningPod(PodUID("w"), "w", JobKey("ns/wide"), ProjectName("team-a"), "a", devices)
    given = PlanInput(
        builder.obj(), projects(project(limit_milli=1000)), [job("j", pod_shape(1000))]
    )
    (wait,) = plan(replace(given, running_pods=Roll([wide]))).waits
    assert wait.message == (
        "needs 1 GPU; project team-a holds 1 of its limit 1; held by ns/wide (0.25), and pods that"
        " are about to start (0.75)"
    )


def test_who_holds_a_projects_share_is_told_with_when_a_time_limit_frees_it():
    builder = ClusterBuilder().node("a", 4)
    pods = []
    for number, ends in enumerate((None, 7200.0, 3600.0)):
        name = f"h{number}"
        builder.held(f"a/{number}", 1000, "team-a")
        devices = (DeviceAllocation(0, f"a/{number}", 1000, 40448),)
        held = RunningPod(
            PodUID(name), name, JobKey(f"ns/{name}"), ProjectName("team-a"), "a", devices
        )
        pods.append(replace(held, ends=ends))
    team = projects(project(quota_milli=3000, weight=0))
    result = plan(
        PlanInput(builder.obj(), team, [job("j", pod_shape(1000))], running_pods=Roll(pods))
    )
    assert result.waits[0].reason is Reason.WAITING_FOR_QUOTA
    assert result.waits[0].message == (
        "needs 1 GPU; project team-a holds 3 of its quota 3 (weight 0: it never borrows); held by"
        " ns/h2 (1, until 1970-01-01T01:00:00Z at the latest), ns/h1 (1, until"
        " 1970-01-01T02:00:00Z at the latest), ns/h0 (1)"
    )
