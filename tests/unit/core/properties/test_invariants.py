"""What holds for every plan, whatever the cluster, the projects and the jobs."""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment, Plan, Reason
from gpu_scheduler.core.model.devices import accepts, share
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    PodShape,
    Project,
    ProjectName,
    WaitingJob,
)
from gpu_scheduler.core.model.snapshot import DeviceType
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

TEAMS = ("a", "b", "c")
POD_KINDS = (
    pod_shape(500),
    pod_shape(300, cpu_milli=4000),
    pod_shape(1000),
    pod_shape(1000, count=2),
    pod_shape(250, count=2),
    pod_shape(mib=12_000),
    pod_shape(mib=30_000, cpu_milli=1000),
    pod_shape(400, models=("a30",)),
    pod_shape(700, min_compute=(8, 0), models=("a100", "a30")),
    pod_shape(containers=[DeviceRequest(0, 1, 600), DeviceRequest(1, 1, 0, 8_000)]),
    pod_shape(1000, count=3),
    pod_shape(cpu_milli=6000),
)


@dataclass
class Scene:
    cluster: Cluster
    projects: dict[ProjectName, Project]
    jobs: list[WaitingJob]

    def plan(self) -> Plan:
        return plan(PlanInput(self.cluster, self.projects, self.jobs))


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    builder = ClusterBuilder()
    for n in range(draw(st.integers(0, 4))):
        models = draw(st.lists(st.sampled_from([A100, A30, "Tesla-T4"]), max_size=3))
        builder.node(
            f"n{n}",
            models=models,
            cpu_milli=draw(st.sampled_from([4000, 16_000])),
            pods=draw(st.integers(0, 4)),
            unschedulable=draw(st.sampled_from(["", "", "", "is cordoned"])),
            unhealthy=draw(st.sets(st.integers(0, 2), max_size=1)),
        )
        for i in range(len(models)):
            held = draw(st.sampled_from([0, 0, 100, 500, 1000]))
            if held:
                builder.held(f"n{n}/{i}", held, draw(st.sampled_from(TEAMS)))
    teams = [
        project(
            name,
            draw(st.sampled_from([0, 500, 1000, 2500])),
            draw(st.sampled_from([None, 0, 1500, 3000])),
            draw(st.integers(0, 1)),
        )
        for name in TEAMS
    ]
    jobs = [
        job(
            f"j{i}",
            draw(st.sampled_from(POD_KINDS)),
            draw(st.integers(1, 4)),
            project=draw(st.sampled_from(TEAMS)),
            interactive=draw(st.booleans()),
            priority=draw(st.sampled_from([0, 50])),
            created=float(i),
            avoid=draw(st.sets(st.sampled_from(["n0", "n1"]), max_size=1)),
        )
        for i in range(draw(st.integers(0, 8)))
    ]
    return Scene(builder.obj(), projects(*teams), jobs)


def charge(place: Assignment) -> int:
    return sum(allocated.milli for allocated in place.devices)


def allocations(scene: Scene, result: Plan) -> list[tuple[Assignment, Project, int]]:
    """Each placement with its project and what the project held before."""
    held = Counter(scene.cluster.allocated_milli)
    owner = {job.key: job.project for job in scene.jobs}
    found = []
    for place in result.assignments:
        name = owner[place.job]
        found.append((place, scene.projects[name], held[name]))
        held[name] += charge(place)
    return found


def could_use(scene: Scene, what: PodShape, node: int) -> bool:
    """Whether a node has devices that suit a pod shape of one request, and the rest of it."""
    c, (request,) = scene.cluster, what.devices
    serving = sum(
        accepts(what, DeviceType(c.dev_model[d], c.dev_usable_mib[d], c.dev_compute[d]))
        and share(request, c.dev_usable_mib[d])[0] <= 1000
        for d in range(c.first[node], c.first[node + 1])
    )
    info = c.nodes[node]
    return serving >= request.count and info.cpu_milli >= what.cpu_milli and info.pods > 0


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes())
def test_no_device_and_no_node_is_given_more_than_it_has(scene: Scene):
    c = deepcopy(scene.cluster)
    names = [node.name for node in c.nodes]
    pod_shapes = {pod.uid: pod.pod_shape for job in scene.jobs for pod in job.pods}
    for place in scene.plan().assignments:
        node = names.index(place.node)
        c.free_pods[node] -= 1
        c.free_cpu_milli[node] -= pod_shapes[place.pod].cpu_milli
        for allocated in place.devices:
            d = c.dev_id.index(allocated.device)
            assert c.first[node] <= d < c.first[node + 1]
            assert c.dev_healthy[d]
            c.free_device(d, -allocated.fraction_milli, -allocated.mib)
    for left in (c.free_milli, c.free_mib, c.free_pods, c.free_cpu_milli):
        assert min(left, default=0) >= 0


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes())
def test_each_pod_gets_what_it_asked_for_where_it_may_run(scene: Scene):
    c = scene.cluster
    pods = {pod.uid: pod for job in scene.jobs for pod in job.pods}
    unschedulable = {node.name for node in c.nodes if node.unschedulable}
    for place in scene.plan().assignments:
        pod = pods.pop(place.pod)  # a second placement of the same pod fails here
        assert place.node not in unschedulable | pod.avoid
        for request in pod.pod_shape.devices:
            mine = [g for g in place.devices if g.container == request.container]
            assert len({g.device for g in mine}) == len(mine) == request.count
            for allocated in mine:
                d = c.dev_id.index(allocated.device)
                assert (allocated.fraction_milli, allocated.mib) == share(
                    request, c.dev_usable_mib[d]
                )
                kind = DeviceType(c.dev_model[d], c.dev_usable_mib[d], c.dev_compute[d])
                assert accepts(pod.pod_shape, kind)


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes())
def test_no_project_grows_past_its_ceiling(scene: Scene):
    for place, team, held in allocations(scene, scene.plan()):
        if charge(place):
            assert held + charge(place) <= quota.ceiling_milli(team)
            assert team.limit_milli is None or held + charge(place) <= team.limit_milli


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(scenes())
def test_a_borrower_never_takes_what_a_pod_inside_its_quota_waits_for(scene: Scene):
    result = scene.plan()
    lone = {
        job.key: job.pods[0] for job in scene.jobs if len(job.pods[0].pod_shape.devices) == 1
    }  # jobs have pods of one pod shape here
    held = Counter(scene.cluster.allocated_milli)
    borrowed = set()
    for place, team, before in allocations(scene, result):
        held[team.name] += charge(place)
        if charge(place) and before + charge(place) > team.quota_milli:
            borrowed.add(place.node)
    owner = {job.key: job.project for job in scene.jobs}
    unmet = {Reason.FRAGMENTED, Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_RESOURCES}
    for wait in result.waits:
        team = scene.projects[owner[wait.job]]
        if wait.job not in lone or wait.reason not in unmet:
            continue
        pod = lone[wait.job]
        least = pod.pod_shape.nominal_milli or 1000  # of a request in MiB: at most a whole device
        if held[team.name] + least > min(team.quota_milli, quota.limit_milli(team)):
            continue
        for n, node in enumerate(scene.cluster.nodes):
            if node.name not in pod.avoid and could_use(scene, pod.pod_shape, n):
                assert node.name not in borrowed


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter_and_nothing_is_changed(scene: Scene, random):
    before = deepcopy(scene.cluster)
    first = scene.plan()
    assert scene.cluster == before
    random.shuffle(scene.jobs)
    scene.projects = dict(random.sample(sorted(scene.projects.items()), len(scene.projects)))
    assert scene.plan() == first


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes())
def test_every_job_starts_whole_or_waits_once_with_a_sentence(scene: Scene):
    result = scene.plan()
    placed = Counter(place.job for place in result.assignments)
    waits = Counter(wait.job for wait in result.waits)
    for each in scene.jobs:
        assert waits[each.key] == (placed[each.key] < len(each.pods))
    for team in TEAMS:
        keys = {job.key for job in scene.jobs if job.project == team}
        positions = [wait.position for wait in result.waits if wait.job in keys]
        assert positions == list(range(1, len(positions) + 1))
    for wait in result.waits:
        assert wait.message
        assert wait.reason is not Reason.INVALID


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(scenes())
def test_carrying_a_plan_out_leaves_nothing_to_start_and_the_same_sentences(scene: Scene):
    first = scene.plan()
    c = scene.cluster
    pod_shapes = {pod.uid: pod.pod_shape for job in scene.jobs for pod in job.pods}
    names = [node.name for node in c.nodes]
    for place, team, _ in allocations(scene, first):
        node = names.index(place.node)
        c.free_pods[node] -= 1
        c.free_cpu_milli[node] -= pod_shapes[place.pod].cpu_milli
        for allocated in place.devices:
            d = c.dev_id.index(allocated.device)
            c.free_device(d, -allocated.fraction_milli, -allocated.mib)
        c.allocated_milli[team.name] = c.allocated_milli.get(team.name, 0) + charge(place)
    started = {place.pod for place in first.assignments}
    scene.jobs = [
        WaitingJob(j.key, j.project, rest, j.interactive, j.priority, j.created)
        for j in scene.jobs
        if (rest := tuple(pod for pod in j.pods if pod.uid not in started))
    ]
    second = scene.plan()
    assert second.assignments == ()
    assert second.waits == first.waits
