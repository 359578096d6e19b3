from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster import control_plane
from cluster.control_plane import Plan
from cluster.ports import block
from cluster.settings import Settings

PLAN = Plan(Path("/run/x"), block(21_000), Settings())


def plan(**asked: Any) -> Plan:
    return replace(PLAN, settings=Settings(**asked))


def test_everything_listens_on_loopback_only() -> None:
    assert "--bind-address=127.0.0.1" in control_plane.api_server(PLAN)
    assert "--bind-address=127.0.0.1" in control_plane.scheduler(PLAN)
    assert "--bind-address=127.0.0.1" in control_plane.controller_manager(PLAN)
    urls = [flag for flag in control_plane.etcd(PLAN) if "http" in flag]
    assert urls
    assert all("//127.0.0.1:" in url for url in urls)


def test_a_real_node_reaches_the_api_server() -> None:
    flags = control_plane.api_server(plan(real_node=True))
    assert "--bind-address=0.0.0.0" in flags
    assert "--authorization-mode=Node,RBAC" in flags


@pytest.mark.parametrize("program", [control_plane.scheduler, control_plane.controller_manager])
def test_rates_are_the_defaults_unless_asked_for(program: control_plane.Program) -> None:
    assert not any("qps" in flag for flag in program(PLAN))
    raised = program(plan(qps=2000))
    assert {"--kube-api-qps=2000", "--kube-api-burst=2000"} <= set(raised)


def test_requests_are_logged_only_when_asked_for() -> None:
    assert not any("audit" in flag for flag in control_plane.api_server(PLAN))
    logged = control_plane.api_server(plan(audit=True))
    assert "--audit-log-path=/run/x/logs/audit.log" in logged


def test_all_controllers_run_unless_asked_otherwise() -> None:
    assert "--controllers=*" in control_plane.controller_manager(PLAN)
    asked = control_plane.controller_manager(plan(controllers=("*", "-job")))
    assert "--controllers=*,-job" in asked


def test_feature_gates_reach_every_part() -> None:
    gated = plan(feature_gates=("A=true", "B=false"))
    for program in (
        control_plane.api_server,
        control_plane.scheduler,
        control_plane.controller_manager,
    ):
        assert "--feature-gates=A=true,B=false" in program(gated)
