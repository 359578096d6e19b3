"""What is promised to be measured is there: what is not needs a reason here."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"
PROMISED = """
    gpu_allocated_ratio gpu_utilization_ratio gpu_memory_total_bytes gpu_memory_allocated_bytes
    gpu_memory_used_bytes gpu_power_watts gpu_temperature_celsius gpu_throttled gpu_tensor_ratio
    gpu_xid_total gpu_ecc_errors_total gpu_remapped_rows_total gpu_last_active_timestamp_seconds
    node_gpus node_gpus_allocated fragmented_gpus agent_last_report_timestamp_seconds
    project_quota_gpus project_allocated_gpus project_borrowed_gpus project_pending_gpus
    project_limit_gpus jobs pending_jobs gpus gpujob_info gpujob_requested_gpus
    gpujob_allocated_gpus gpujob_gpu_utilization_ratio gpujob_gpu_memory_used_bytes
    gpujob_gpu_memory_limit_bytes gpujob_cpu_used_cores gpujob_ram_used_bytes
    queue_wait_seconds job_run_seconds gpu_seconds_total gpu_idle_seconds_total
    scheduling_cycle_seconds bind_seconds scheduling_attempts_total preemptions_total
    memory_limit_violations_total retries_charged_by_race_total sweep_trials sweep_best_objective
    advice build_info leader event_loop_stall_seconds gc_pause_seconds
""".split()


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_metric_is_exposed(name: str) -> None:
    assert f"gpusched_{name}" in re.findall(r"^### (\S+)$", PAGE.read_text(), re.M)
