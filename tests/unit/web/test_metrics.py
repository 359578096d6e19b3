"""What Prometheus sees. Names are API: dashboards and alerts are written against them."""

import re
from pathlib import Path
from typing import Any, Literal, cast

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.runtime.fake_client import FakeClient
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.state.builders import gpujob_body, half, make_job, make_node, make_pod
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.runtime.informers.our_lists import PATHS
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping
from gpu_scheduler.usage.figures import ClusterUse
from gpu_scheduler.web.metrics import OperatorMetrics, without_reason

Sample = tuple[str, tuple[tuple[str, str], ...]]

UNSATISFIABLE = (("project", "team-a"), ("reason", "Unsatisfiable"), ("type", "training"))
PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def recorded() -> set[str]:
    """The operator's metrics in the committed reference, which another test compares as well."""
    operator = PAGE.read_text().partition("\n## Operator\n")[2].partition("\n## ")[0]
    return {name.removesuffix("_total") for name in re.findall(r"^### (\S+)$", operator, re.M)}


async def used() -> ClusterUse:
    return ClusterUse()


class Served:
    """A dashboard."""

    def reviews(self) -> dict[tuple[str, str], int]:
        return {("token", "accepted"): 3, ("access", "refused"): 4}

    def open_streams(self) -> int:
        return 2


async def scrape(metrics: OperatorMetrics) -> dict[Sample, float]:
    await metrics.look()
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def families(metrics: OperatorMetrics) -> set[str]:
    await metrics.look()
    text = generate_latest(metrics.registry).decode()
    return {
        family.name
        for family in text_string_to_metric_families(text)
        if not family.name.endswith("_created")
    }


def make(leader: bool = True, holders: Literal["off", "devices"] = "off") -> OperatorMetrics:
    client: Any = FakeClient()
    client.requests = {("GET", "200"): 3}
    metrics = OperatorMetrics(client)
    if leader:
        settings = OperatorSettings(identity="me", holders=holders)
        operator = metrics.operator = Operator(client, settings, metrics, "me", Sweeping)
        operator.informers.custom_resources.project(project_body(quota=2.5))
        operator.informers.custom_resources.gpujob(gpujob_body(status={"phase": "Running"}))
        operator.state.nodes.changed(make_node("a"))
        operator.state.job_changed(make_job(parallelism=2))
        operator.state.pod_changed(make_pod(node="a", devices=half("1"), phase="Running"))
        operator.state.pod_changed(make_pod("job-1", index=1, cpu="999"))
        operator.planning.cycle()
        operator.binding.binder.results["placed"] += 2
        operator.eviction.evictor.counts["charged_by_race"] += 1
        operator.binding.gangs.counts["member"] += 1
        operator.eviction.overcap.violations["team-a", "evict"] += 2
        operator.sweeping.reports.answers[403] += 2
        operator.reports.checkpoints.answers[200] += 1
        operator.reports.token_reviews.results["refused"] += 3
        assert isinstance(operator.sweeping, Sweeping)
        operator.sweeping.pruning.ended += 1
        metrics.bind_seconds(0.003)
        metrics.use = used
        metrics.dashboard = Served()
    return metrics


async def test_names_have_the_prefix_and_stay() -> None:
    """Those of a leader with every feature on that has seen a little of everything."""
    found = await families(make(holders="devices"))
    assert found == recorded()
    assert all(name.startswith("gpusched_") for name in found)


async def test_holder_pods_are_counted_where_there_are_any() -> None:
    assert recorded() - await families(make()) == {"gpusched_holders", "gpusched_holder_failures"}


async def test_what_the_dashboard_asks_and_its_open_pages_are_told() -> None:
    found = await scrape(make())
    labels = (("kind", "access"), ("result", "refused"))
    assert found["gpusched_dashboard_reviews_total", labels] == 4
    assert found["gpusched_dashboard_streams", ()] == 2


async def test_violations_of_memory_caps_are_told_by_project_and_policy() -> None:
    labels = (("policy", "evict"), ("project", "team-a"))
    assert (await scrape(make()))["gpusched_memory_limit_violations_total", labels] == 2


async def test_a_stand_by_says_only_what_it_knows() -> None:
    seen = await scrape(make(leader=False))
    assert seen["gpusched_leader", ()] == 0
    assert seen["gpusched_api_requests_total", (("method", "GET"), ("outcome", "200"))] == 3
    assert not any("project" in name for name, _ in seen)


async def test_a_wall_clock_that_is_set_is_told_with_its_size_and_direction() -> None:
    wall = [1000.0]
    clock = Clock(lambda: 5.0, lambda: wall[0])
    metrics = OperatorMetrics(cast(Any, FakeClient()), clock)
    wall[0] -= 3600.0
    clock.look()
    seen = await scrape(metrics)
    assert seen["gpusched_clock_ahead_seconds", ()] == -3600.0
    steps = [seen["gpusched_clock_steps_total", (("direction", d),)] for d in ("back", "forward")]
    assert steps == [1, 0]


async def test_a_leader_says_which_watch_is_lost_and_is_not_ready_meanwhile() -> None:
    metrics = make()
    watches = metrics.operator.common.client.watches  # type: ignore[union-attr]
    assert metrics.missing() == ""
    for path in PATHS.values():
        watches.followed(path)
    watches.lost(PATHS["gpujobs"], errors.NotFound(404, "", "404 page not found"))
    seen = await scrape(metrics)
    lost = {kind: seen["gpusched_watch_lost_seconds", (("resource", kind),)] for kind in PATHS}
    assert [kind for kind, seconds in lost.items() if seconds > 0] == ["gpujobs"]
    assert metrics.missing().startswith(f"watch of {PATHS['gpujobs']}: lost for 0 s: 404 page")
    watches.followed(PATHS["gpujobs"])
    assert metrics.missing() == ""


async def test_a_leader_shows_devices_projects_and_jobs() -> None:
    seen = await scrape(make())
    assert seen["gpusched_leader", ()] == 1

    def ratio(gpu: str) -> float:
        labels = (("gpu", gpu), ("model", "NVIDIA-A100-PCIE-40GB"), ("node", "a"), ("uuid", ""))
        return seen["gpusched_gpu_allocated_ratio", labels]

    assert (ratio("0"), ratio("1")) == (0.0, 0.5)
    project = (("project", "team-a"),)
    assert seen["gpusched_project_quota_gpus", project] == 2.5
    assert seen["gpusched_project_allocated_gpus", project] == 0.5
    assert seen["gpusched_project_borrowed_gpus", project] == 0
    assert not any(name == "gpusched_project_limit_gpus" for name, _ in seen)
    assert seen["gpusched_node_gpus", (("node", "a"),)] == 2
    assert seen["gpusched_node_gpus_allocated", (("node", "a"),)] == 0.5
    assert seen["gpusched_jobs", (("phase", "Running"),)] == 1
    assert seen["gpusched_pending_jobs", UNSATISFIABLE] == 1
    assert seen["gpusched_waiting_pods", ()] == 1
    assert seen["gpusched_set_aside", (("kind", "node"),)] == 0


async def test_pods_that_ask_by_themselves_count_like_those_of_gpujobs() -> None:
    metrics = make()
    assert metrics.operator is not None
    state = metrics.operator.state
    state.lacks = lambda pod, asked: ""
    state.pod_changed(asking("runs", node="a", devices=half("0"), phase="Running"))
    state.pod_changed(asking("placed", node="a", devices=half("0", 250)))
    state.pod_changed(asking("waits", cpu="999"))
    state.pod_changed(asking("held", gates=("example.com/license",)))
    state.pod_changed(asking("over", node="a", devices=half("0"), phase="Succeeded"))
    metrics.operator.planning.cycle()
    seen = await scrape(metrics)
    found = {key[0][1]: n for (name, key), n in seen.items() if name == "gpusched_share_pods"}
    assert found == {"waiting": 1, "blocked": 1, "placed": 1, "running": 1}
    assert seen["gpusched_project_allocated_gpus", (("project", "team-a"),)] == 1.25
    assert seen["gpusched_pending_jobs", UNSATISFIABLE] == 1
    alone = UNSATISFIABLE[:2] + (("type", "interactive"),)
    assert seen["gpusched_pending_jobs", alone] == 1
    assert seen["gpusched_waiting_pods", ()] == 2


async def test_what_is_held_on_devices_that_nobody_lists_is_a_number_by_node() -> None:
    metrics = make()
    assert not any(name == "gpusched_unlisted_device_milli" for name, _ in await scrape(metrics))
    assert metrics.operator is not None
    state = metrics.operator.state
    state.pod_changed(make_pod("job-2", index=2, node="a", devices=half("GPU-gone")))
    state.pod_changed(make_pod("job-3", index=3, node="b", devices=half("0", 250)))
    seen = await scrape(metrics)
    assert seen["gpusched_unlisted_device_milli", (("node", "a"),)] == 500
    assert seen["gpusched_unlisted_device_milli", (("node", "b"),)] == 250


async def test_what_happened_is_counted() -> None:
    seen = await scrape(make())
    assert seen["gpusched_scheduling_attempts_total", (("result", "placed"),)] == 2
    assert seen["gpusched_preemptions_total", (("reason", "reclaim"),)] == 0
    assert seen["gpusched_gang_releases_total", (("cause", "member"),)] == 1
    assert seen["gpusched_gang_releases_total", (("cause", "incomplete"),)] == 0
    assert seen["gpusched_retries_charged_by_race_total", ()] == 1
    assert seen["gpusched_overbooked_pods_total", ()] == 0
    assert seen["gpusched_trial_reports_total", (("code", "403"),)] == 2
    assert seen["gpusched_token_reviews_total", (("result", "refused"),)] == 3
    assert seen["gpusched_token_reviews_total", (("result", "accepted"),)] == 0
    assert seen["gpusched_pruned_trials_ended_total", ()] == 1
    assert seen["gpusched_bind_seconds_count", ()] == 1
    assert seen["gpusched_scheduling_cycle_seconds_count", ()] == 1


def test_a_job_that_does_not_say_what_it_waits_for_is_counted_after_two_seconds() -> None:
    bodies = [
        gpujob_body("silent"),
        gpujob_body("old", status={"phase": "Pending", "reason": ""}),
        gpujob_body("says", status={"phase": "Pending", "reason": "CreatingPods"}),
        gpujob_body("runs", status={"phase": "Running"}),
        gpujob_body("over", status={"phase": "Failed"}),
        gpujob_body("goes", deleting=True),
    ]
    jobs = [gpujob_record(body) for body in bodies]
    created = jobs[0].created_seconds
    assert without_reason(jobs, created + 1.5) == 0
    assert without_reason(jobs, created + 2.5) == 2


async def test_use_that_cannot_be_looked_at_is_not_told_and_all_else_is() -> None:
    async def broken() -> ClusterUse:
        raise RuntimeError("unheard of")

    metrics, before = make(), counts["usage"]
    assert ("gpusched_silent_agents", ()) in await scrape(metrics)
    metrics.use = broken
    seen = await scrape(metrics)
    assert ("gpusched_silent_agents", ()) not in seen
    assert seen["gpusched_leader", ()] == 1
    assert counts["usage"] == before + 1


async def test_no_label_names_a_tenants_pod() -> None:
    for _, labels in await scrape(make()):
        assert not {"pod", "job", "trial"} & dict(labels).keys()
