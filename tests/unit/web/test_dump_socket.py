"""Dumps come out of a socket that one user may open, and out of nothing else."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.unit.builders import ClusterBuilder

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import Dump, dump_of, read, written
from gpu_scheduler.web import admin, reports
from gpu_scheduler.web.dump_socket import DumpSocket


def large() -> Dump:
    builder = ClusterBuilder()
    for n in range(5_000):
        builder.node(f"n{n}", 8)
    return dump_of(PlanInput(builder.obj(), {}, ()), PlannerCache().workload)


async def read_by_program(path: Path) -> bytes:
    """As ``kubectl exec`` runs it."""
    env = {**os.environ, "GPUSCHED_DUMP_SOCKET": str(path)}
    command = (sys.executable, "-m", "gpu_scheduler.web.read_dump")
    running = await asyncio.create_subprocess_exec(*command, env=env, stdout=subprocess.PIPE)
    return (await running.communicate())[0]


async def test_the_program_in_the_pod_prints_what_the_leader_knows(tmp_path: Path) -> None:
    path, dump = tmp_path / "dump.sock", large()
    path.write_text("left by a container that was killed")
    socket = DumpSocket(str(path), lambda: dump)
    await socket.start()
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        both = await asyncio.gather(read_by_program(path), read_by_program(path))
    finally:
        await socket.cleanup()
    assert both[0] == both[1] == b"".join(written(dump))
    assert len(read(both[0]).given.cluster.nodes) == 5_000
    assert not path.exists()


async def test_a_replica_that_does_not_lead_prints_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dump.sock"
    socket = DumpSocket(str(path), lambda: None)
    await socket.start()
    try:
        assert await read_by_program(path) == b""
    finally:
        await socket.cleanup()


async def test_who_reads_a_part_and_goes_away_keeps_nobody_waiting(tmp_path: Path) -> None:
    path, dump = tmp_path / "dump.sock", large()
    socket = DumpSocket(str(path), lambda: dump)
    await socket.start()
    try:
        reader, writer = await asyncio.open_unix_connection(path)
        await reader.readexactly(100)
        writer.close()
        assert read(await read_by_program(path)) is not None
    finally:
        await socket.cleanup()


@pytest.mark.parametrize("which", ["admin", "reports"])
def test_no_port_has_a_path_for_dumps(which: str) -> None:
    apps = {
        "admin": lambda: admin.app(CollectorRegistry(), ready=lambda: "", state=lambda: "leader"),
        "reports": lambda: reports.app(lambda: None),
    }
    paths = {str(route.resource) for route in apps[which]().router.routes()}
    assert paths
    assert not [path for path in paths if "dump" in path]
