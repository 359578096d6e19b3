"""The operator's settings: one home, read from ``GPUSCHED_*`` environment variables.

The chart's values carry the same names and defaults. A value that cannot be used ends the start
with a sentence that names the variable.
"""

import os
import socket
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gpu_scheduler import environment
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy
from gpu_scheduler.core.packing.policy import OFFERED

PREFIX = "GPUSCHED_"


class OperatorSettings(BaseModel):
    """Everything that can be set. Field ``lease_seconds`` is ``GPUSCHED_LEASE_SECONDS``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    placement: Literal["auto", "bind", "gate"] = Field("auto", description="Write path of pods.")
    pin: Literal["affinity", "hostname"] = Field(
        "affinity", description="How the gate path ties a pod to its node; hostname for Karpenter."
    )
    packing: Literal[*OFFERED] = Field(  # type: ignore[valid-type]
        OFFERED[0], description="How nodes and devices are chosen; see docs/packing.md."
    )
    lease_namespace: str = Field("gpu-scheduler", description="Namespace of the leader's Lease.")
    lease_seconds: float = Field(15.0, ge=0.3, description="Life of the Lease without renewal.")
    renew_deadline_seconds: float = Field(10.0, ge=0.2, description="Writes stop after this.")
    retry_seconds: float = Field(
        2.0, ge=0.05, description="Between renewals; who stands by tries at least once a second."
    )
    admin_port: int = Field(8080, ge=0, le=65535, description="Health and metrics; 0 = off.")
    admin_host: str = Field("0.0.0.0", description="Address that the admin port listens on.")
    scrape_token_file: str = Field(
        "", description="Holds the token of scrapes that see tenants; empty = none does."
    )
    report_port: int = Field(0, ge=0, le=65535, description="Reports of pods; 0 = off.")
    report_host: str = Field("0.0.0.0", description="Address that the report port listens on.")
    report_url: str = Field("", description="Where pods reach that port, as far as /reports.")
    dashboard_port: int = Field(
        0, ge=0, le=65535, description="The dashboard, on 127.0.0.1 of the pod; 0 = off."
    )
    dashboard_tls_folder: str = Field(
        "", description="Holds the dashboard's tls.crt and tls.key; empty = no certificate."
    )
    dashboard_tls_port: int = Field(
        8443, ge=1, le=65535, description="The dashboard on all addresses, with that certificate."
    )
    dashboard_folder: str = Field("", description="The dashboard's built front end; empty = none.")
    read_logs: bool = Field(
        False, description="Results of sweeps are read from logs; the right to is not given here."
    )
    dashboard_actions: bool = Field(
        False, description="Users may suspend and resume GPUJobs there, by their own rights."
    )
    dump_socket: str = Field(
        "", description="Unix socket that kubectl gpu dump reads in this pod; empty = none."
    )
    agent_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port of agents that say what their GPUs do; 0 = they are not asked.",
    )
    usage_seconds: float = Field(
        60.0, ge=1, description="Between two looks at what work does with its GPUs."
    )
    idle_seconds: float = Field(
        3600.0, ge=60, description="Work without a kernel for so long counts as idle."
    )
    pod: str = Field("", description="Own pod, labelled while this replica leads; empty = none.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severity of the lines in the log."
    )
    runtime_class: str = Field(
        "nvidia", description="RuntimeClass of GPU pods when it exists; empty = none."
    )
    isolation: Literal["interposer", "framework"] = Field(
        "interposer", description="What keeps a GPUJob inside its memory cap where it says nothing."
    )
    cap_image: str = Field(
        "", description="Image that brings libgpucap into pods; empty = framework for all."
    )
    cap_pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        "", description="When to pull that image; empty = as the cluster does by default."
    )
    holders: Literal["off", "devices", "nodes"] = Field(
        "off", description="Pods that request nvidia.com/gpu for what we use; docs/coexistence.md."
    )
    holders_image: str = Field("", description="Image of these pods.")
    holders_sleep: bool = Field(True, description="That image is ours and is told to sleep.")
    holders_pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        "", description="When to pull it; empty = as the cluster does by default."
    )
    holders_pull_secrets: str = Field("", description="Names of pull secrets, comma-separated.")
    holders_priority_class: str = Field("", description="Their PriorityClass; empty = none.")
    holders_keep_seconds: float = Field(
        300.0, ge=0, description="How long such a pod stays once its GPU is free."
    )
    holders_owner: str = Field(
        "", description="Deployment in the Lease's namespace that owns them; empty = nobody."
    )
    stuck_seconds: float = Field(30.0, gt=0, description="Unschedulable this long: evict.")
    avoid_seconds: float = Field(60.0, ge=0, description="A job avoids a failed node this long.")
    reservation_after_seconds: float = Field(
        60.0, ge=0, description="A pod whose turn it is and that waits so long gets room reserved."
    )
    preemption: Literal["fair", "strict"] = Field(
        "fair", description="When pods are evicted for others; docs/fair-share.md."
    )
    guarantee_seconds: float = Field(
        60.0, ge=0, le=86400, description="A pod inside its quota waits no longer for borrowers."
    )
    patience_seconds: float = Field(
        60.0, ge=0, le=86400, description="A higher priority evicts nobody before."
    )
    min_runtime_seconds: float = Field(
        300.0, ge=0, le=604800, description="What ran for less is not evicted for a fair share."
    )
    share_window_seconds: float = Field(
        900.0, ge=1, le=86400, description="Fair shares are averages over so long."
    )
    consolidation: bool = Field(
        False, description="Fractional pods may move together so that multi-GPU jobs can start."
    )
    cycle_seconds: float = Field(
        0.05, ge=0, description="Pods that appear within this time of others are planned together."
    )
    status_seconds: float = Field(1.0, ge=0.05, description="Least time between status writes.")
    recheck_seconds: float = Field(
        30.0,
        gt=0,
        le=600,
        description="What was refused is tried again after this, if nobody says that it changed.",
    )
    eviction_pause_seconds: float = Field(
        10.0, gt=0, le=60, description="Most between two tries of an eviction that is refused."
    )
    results_seconds: float = Field(
        5.0, ge=0.05, description="Least time between writes of the results of 1,000 trials."
    )
    resync_seconds: float = Field(300.0, ge=1, description="Full re-list of our own objects.")
    scheduled_events: bool = Field(
        True, description="An Event Scheduled for each pod that asks by itself and is bound."
    )
    write_concurrency: int = Field(50, ge=1, le=1000, description="Placing writes in flight.")
    identity: str = Field("", description="Name in the Lease; default: the pod's name.")

    @property
    def preemption_policy(self) -> PreemptionPolicy:
        """When somebody may be evicted for others."""
        if self.preemption == "strict":
            return STRICT
        return PreemptionPolicy(
            self.guarantee_seconds,
            self.patience_seconds,
            self.min_runtime_seconds,
            self.share_window_seconds,
        )


def load(environ: Mapping[str, str] = os.environ) -> OperatorSettings:
    """Settings from the environment.

    Raises:
        SettingsError: an unknown variable with our prefix, or a value that cannot be used.
    """
    empty = {f"{PREFIX}RUNTIME_CLASS"}
    identity = f"{socket.gethostname()}-{os.getpid()}"
    settings = environment.read(OperatorSettings, PREFIX, environ, empty, identity=identity)
    _check_election(settings)
    if settings.report_port and not settings.report_url:
        raise environment.SettingsError(f"{PREFIX}REPORT_URL: is needed with {PREFIX}REPORT_PORT")
    if settings.holders != "off" and not settings.holders_image:
        raise environment.SettingsError(f"{PREFIX}HOLDERS_IMAGE: is needed with {PREFIX}HOLDERS")
    return settings


def _check_election(settings: OperatorSettings) -> None:
    names = ("retry_seconds", "renew_deadline_seconds", "lease_seconds")
    for shorter, longer in pairwise(names):
        if getattr(settings, shorter) >= getattr(settings, longer):
            raise environment.SettingsError(
                f"{PREFIX}{shorter.upper()}: {getattr(settings, shorter):g} must be below "
                f"{PREFIX}{longer.upper()} ({getattr(settings, longer):g})"
            )
