from dataclasses import replace

from prometheus_client import generate_latest
from tests.unit.agent.builders import container, sample, seen, use
from tests.unit.agent.fake_driver import MIB, gpu

from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.usage import ContainerUse, Usage


def shown(*uses: ContainerUse) -> list[str]:
    metrics = AgentMetrics("n1")
    metrics.sample, metrics.usage = sample(), Usage(uses, {})
    metrics.counts.violations = 2
    return generate_latest(metrics.registry).decode().splitlines()


JOB = '{job="train",namespace="team-a",project="project-a"}'


def test_a_device_is_named_by_node_number_uuid_and_model() -> None:
    labels = f'{{gpu="0",model="NVIDIA A100-PCIE-40GB",node="n1",uuid="{gpu(0)}"}}'
    assert f"gpusched_gpu_memory_used_bytes{labels} 5.36870912e+08" in shown()
    assert f"gpusched_gpu_healthy{labels} 1.0" in shown()


def test_what_the_driver_does_not_know_is_absent() -> None:
    assert not [line for line in shown() if line.startswith("gpusched_gpu_power_watts{")]
    assert not [
        line
        for line in shown(use(seen(mib=None)))
        if line.startswith("gpusched_job_gpu_memory_used_bytes{")
    ]


def test_the_pods_of_a_job_are_summed_up() -> None:
    lines = shown(use(seen(1, 1000)), use(seen(2, 24), of=container(uid="other")))
    assert f"gpusched_job_gpu_memory_used_bytes{JOB} 1.073741824e+09" in lines
    (limit,) = (ln for ln in lines if ln.startswith(f"gpusched_job_gpu_memory_limit_bytes{JOB}"))
    assert float(limit.split()[-1]) == 2 * 20000 * MIB
    assert "gpusched_memory_limit_violations_total 2.0" in lines


def test_how_busy_a_job_is_is_told_only_where_the_driver_can_tell() -> None:
    name = "gpusched_job_gpu_utilization_ratio{"
    assert f"{name[:-1]}{JOB} 0.5" in shown(use(replace(seen(), busy_ratio=0.5)))
    assert f"{name[:-1]}{JOB} 0.0" in shown(use())
    assert not [line for line in shown(use(seen())) if line.startswith(name)]


def test_no_label_is_a_trial() -> None:
    assert not [line for line in shown(use(seen())) if 'pod="' in line]
