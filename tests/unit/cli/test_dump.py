"""``dump``: whose pod is asked, how, and what is written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.builders import ClusterBuilder
from tests.unit.cli.server import Server, serving

from gpu_scheduler.cli.root import app
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import dump_of, read, written

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader"
DUMP = b"".join(
    written(
        dump_of(PlanInput(ClusterBuilder().node("dell-1").obj(), {}, ()), PlannerCache().workload)
    )
)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({}) as made:
        made.answers[f"GET {LEASE}"] = {"spec": {"holderIdentity": "operator-5f-x_1a2b3c4d"}}
        yield made


@pytest.fixture
def call(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*arguments: str, prints: bytes = DUMP, script: str = "") -> Result:
        (tmp_path / "prints").write_bytes(prints)
        program = tmp_path / "kubectl"
        said = f'echo "$@" > {tmp_path}/said; {script} /bin/cat {tmp_path}/prints\n'
        program.write_text(f"#!/bin/sh\n{said}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        env = {"KUBECONFIG": server.kubeconfig(tmp_path)}
        return CliRunner().invoke(app, ["dump", *arguments], prog_name="kubectl gpu", env=env)

    return run


def test_the_leaders_pod_is_asked_and_what_it_says_is_printed(call: Any, tmp_path: Path) -> None:
    result = call()
    assert result.stdout.encode() == DUMP
    assert (tmp_path / "said").read_text().split() == [
        *("exec", "--namespace=gpu-scheduler", "pod/operator-5f-x", "--container=operator"),
        *("--", "python3", "-m", "gpu_scheduler.web.read_dump"),
    ]


def test_a_file_is_for_its_owner_alone(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    result = call("-o", str(file))
    assert (result.exit_code, file.read_bytes()) == (0, DUMP)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "0 jobs wait on 1 nodes" in result.stdout


def test_names_are_replaced_when_asked_for(call: Any) -> None:
    found = call("--replace-names").stdout.encode()
    assert b"dell" in DUMP and b"dell" not in found
    assert (
        read(found).given.cluster.nodes[0].name
        == read(found).given.cluster.nodes[0].labels["kubernetes.io/hostname"]
    )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"prints": b""}, "operator-5f-x does not plan yet"),
        ({"prints": DUMP[:-20]}, "no dump, or a damaged one"),
        ({"script": "echo 'pods is forbidden' >&2; exit 1;"}, "kubectl exec: pods is forbidden"),
    ],
)
def test_what_goes_wrong_is_one_line(call: Any, how: dict[str, Any], says: str) -> None:
    result = call(**how)
    assert result.exit_code
    assert says in result.stderr and result.stderr.count("\n") == 1


def test_without_a_leader_nothing_is_planned(call: Any, server: Server) -> None:
    server.answers[f"GET {LEASE}"] = {"spec": {}}
    assert "nobody leads" in call().stderr
