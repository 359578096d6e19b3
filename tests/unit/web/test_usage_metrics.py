from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from gpu_scheduler.usage.figures import ClusterUse, ContainerFigures, GpuState, WorkUse
from gpu_scheduler.web.usage_metrics import figures

TRAIN = WorkUse(
    namespace="team-a",
    name="train",
    project="vision",
    gpus=1.5,
    requested_gpus=3.0,
    busy=0.4,
    memory_mib=1024.0,
    memory_limit_mib=2048.0,
    cpu_cores=2.5,
    ram_mib=4096.0,
    idle_seconds=0,
    advice="DATA_BOUND",
)
OF_TRAIN = '{gpujob="train",namespace="team-a",project="vision"}'


class Once(CollectorRegistry):
    def __init__(self, use: ClusterUse) -> None:
        super().__init__()
        self._families: list[Metric] = list(figures(use))

    def collect(self) -> list[Metric]:
        return self._families


def shown(use: ClusterUse) -> dict[str, float]:
    text = generate_latest(Once(use)).decode()
    return {
        sample.name
        + "{"
        + ",".join(f'{k}="{v}"' for k, v in sorted(sample.labels.items()))
        + "}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_gpus_add_up_over_their_states() -> None:
    use = ClusterUse(gpus={GpuState.BUSY: 2.25, GpuState.FREE_IN_PIECES: 0.75, GpuState.FREE: 5.0})
    seen = shown(use)
    assert seen['gpusched_gpus{state="free-in-pieces"}'] == 0.75
    assert sum(value for name, value in seen.items() if name.startswith("gpusched_gpus{")) == 8


def test_work_has_its_figures_in_base_units() -> None:
    seen = shown(ClusterUse(work=[TRAIN]))
    found = {
        name.removesuffix(OF_TRAIN).removeprefix("gpusched_gpujob_"): value
        for name, value in seen.items()
        if name.endswith(OF_TRAIN)
    }
    assert found == {
        "allocated_gpus": 1.5,
        "requested_gpus": 3,
        "gpu_utilization_ratio": 0.4,
        "gpu_memory_used_bytes": 1 << 30,
        "gpu_memory_limit_bytes": 2 << 30,
        "cpu_used_cores": 2.5,
        "ram_used_bytes": 4 << 30,
        "idle_seconds": 0,
    }
    info = (
        'gpusched_gpujob_info{gpujob="train",namespace="team-a",project="vision",type="training"}'
    )
    assert seen[info] == 1


def test_the_containers_of_pods_with_several_have_figures_of_their_own() -> None:
    server = ContainerFigures(
        name="server", gpus=0.5, busy=0.4, memory_mib=1.0, memory_limit_mib=2.0
    )
    tuner = ContainerFigures(name="tuner", gpus=0.25)
    seen = shown(ClusterUse(work=[replace(TRAIN, containers=(server, tuner)), TRAIN]))
    labels = OF_TRAIN.removeprefix("{").replace("gpujob", 'gpu_container="{}",gpujob', 1)
    found = {
        name.removeprefix("gpusched_gpujob_container_"): value
        for name, value in seen.items()
        if name.startswith("gpusched_gpujob_container_")
    }
    assert found == {
        "allocated_gpus{" + labels.replace("{}", "server"): 0.5,
        "gpu_utilization_ratio{" + labels.replace("{}", "server"): 0.4,
        "gpu_memory_used_bytes{" + labels.replace("{}", "server"): 1 << 20,
        "gpu_memory_limit_bytes{" + labels.replace("{}", "server"): 2 << 20,
        "allocated_gpus{" + labels.replace("{}", "tuner"): 0.25,
    }


def test_what_is_unknown_is_absent() -> None:
    seen = shown(ClusterUse(work=[WorkUse(namespace="team-a", name="train", project="vision")]))
    names = {name.partition("{")[0] for name in seen}
    assert {name for name in names if name.startswith("gpusched_gpujob_")} == {
        "gpusched_gpujob_info",
        "gpusched_gpujob_allocated_gpus",
    }


def test_seconds_are_counted_by_project_and_type() -> None:
    who = ("vision", "training")
    seen = shown(ClusterUse(gpu_seconds={who: 7200.0}, idle_gpu_seconds={who: 60.0}))
    labels = '{project="vision",type="training"}'
    assert seen[f"gpusched_gpu_seconds_total{labels}"] == 7200
    assert seen[f"gpusched_gpu_idle_seconds_total{labels}"] == 60


def test_when_an_agent_was_heard_is_told_by_node() -> None:
    seen = shown(ClusterUse(heard={"a": 1.7e9}))
    assert seen['gpusched_agent_last_report_timestamp_seconds{node="a"}'] == 1.7e9


def test_advice_is_counted_by_rule() -> None:
    quiet = WorkUse(namespace="team-a", name="quiet")
    seen = shown(ClusterUse(work=[TRAIN, TRAIN, quiet], silent_agents=2))
    assert seen['gpusched_advice{rule="DATA_BOUND"}'] == 2
    assert not any('rule=""' in name for name in seen)
    assert seen["gpusched_silent_agents{}"] == 2


def test_no_label_is_one_that_prometheus_has_itself() -> None:
    work = [replace(TRAIN, containers=(ContainerFigures(name="server"),))]
    families = figures(ClusterUse(work=work))
    labels = {label for family in families for s in family.samples for label in s.labels}
    assert not labels & {"job", "instance", "pod", "service", "endpoint", "container", "trial"}
