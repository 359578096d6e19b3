import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.pods import created, make_pod, output_of, wait_for_phase
from tests.e2e.waits import until

from cluster import Running, node_owner, process, real_node
from cluster.node_cleanup import mounts_of
from cluster.node_layout import BRIDGE, CGROUP, NETWORK, RUN


@pytest.fixture
def stopped_and_started(real_cluster: Running) -> Iterator[Running]:
    """The cluster, whose node runs again after the test whatever the test did."""
    yield real_cluster
    real_node.start(real_cluster)


@dataclass(frozen=True)
class Traces:
    """What the node has put on the machine."""

    processes: list[str]
    mounts: list[Path]
    interfaces: list[str]
    cgroups: list[Path]
    files: list[Path]

    @classmethod
    def now(cls, cluster: Running, ports: list[str]) -> "Traces":
        folder = real_node.node_layout(cluster).folder
        # Whole names: images are built beside this, below a folder whose name begins as the node's.
        ours = re.compile(rf"({re.escape(str(folder))}|{re.escape(str(RUN))})(?![\w-])")
        commands = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (command := command_of(entry)):
                if ours.search(command):
                    commands.append(command)
        fixed = [RUN, folder, Path("/var/lib/kubelet/device-plugins/kubelet.sock")]
        found = [path for path in fixed if path.exists()]
        found += Path("/var/lib/cni/results").glob(f"{NETWORK}-*")
        found += Path("/var/lib/cni/results").glob("cni-loopback-*")
        found += Path("/var/log/containers").glob("*")
        found += Path("/run/containerd/s").glob("*")
        return cls(
            processes=commands,
            mounts=mounts_of(real_node.node_layout(cluster)),
            interfaces=[
                name for name in (BRIDGE, *ports) if Path(f"/sys/class/net/{name}").exists()
            ],
            cgroups=[
                *Path("/sys/fs/cgroup").glob(CGROUP),
                *Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"),
            ],
            files=found,
        )


NOTHING = Traces([], [], [], [], [])


def command_of(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def bridge_ports() -> list[str]:
    return [port.name for port in Path(f"/sys/class/net/{BRIDGE}/brif").iterdir()]


def container_pids(script: str) -> list[int]:
    return [each.pid for each in process.with_arguments("/bin/sh", "-c", script)]


def wait_for_program(script: str) -> None:
    """A container counts as running once it was told to: its program begins a moment later."""
    until(lambda: bool(container_pids(script)), f"{script} runs")


def kill_daemons(cluster: Running) -> None:
    """kill -9 of the kubelet and containerd; their containers go on."""
    layout = real_node.node_layout(cluster)
    for config in (layout.kubelet_config, layout.containerd_config):
        found = process.with_arguments(f"--config={config}")
        daemon = min(found, key=lambda each: each.start)  # a child looks like it until it execs
        os.kill(daemon.pid, signal.SIGKILL)
        process.stop([daemon], grace_seconds=5)


@pytest.mark.parametrize("crash", [False, True], ids=["running", "killed"])
def test_stop_leaves_nothing_behind(stopped_and_started: Running, crash: bool) -> None:
    cluster = stopped_and_started
    script = f"sleep 600; exit {int(crash)}"
    with created(cluster, make_pod().shell(script)) as name:
        wait_for_phase(cluster, name, "Running")
        wait_for_program(script)
        ports = bridge_ports()
        before = Traces.now(cluster, ports)
        assert all([before.processes, before.mounts, before.interfaces, before.cgroups])
        assert len(before.files) >= 5
        if crash:
            kill_daemons(cluster)
            assert container_pids(script), "containers outlive containerd"

        real_node.stop(cluster)

        assert Traces.now(cluster, ports) == NOTHING
        assert container_pids(script) == []
        assert node_owner.current() is None


def test_a_second_stop_does_nothing(stopped_and_started: Running) -> None:
    real_node.stop(stopped_and_started)
    real_node.stop(stopped_and_started)
    assert node_owner.current() is None


def test_start_takes_over_what_a_crash_left(stopped_and_started: Running) -> None:
    cluster = stopped_and_started
    script = "sleep 600; exit 2"
    with created(cluster, make_pod().shell(script)) as name:
        wait_for_phase(cluster, name, "Running")
        wait_for_program(script)
        kill_daemons(cluster)
        left = container_pids(script)

        real_node.start(cluster)

        assert left
        assert not set(left) & set(container_pids(script))
        assert output_of(cluster, make_pod().shell("echo again")) == "again\n"


@dataclass(frozen=True)
class Neighbour:
    """Another cluster of this machine."""

    folder: Path
    name: str = "neighbour"
    server: str = "https://127.0.0.1:1"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def binary(self, name: str) -> Path:
        raise AssertionError(f"{name} must not be started")


def test_the_node_of_a_living_cluster_is_not_taken(real_cluster: Running, tmp_path: Path) -> None:
    with pytest.raises(
        node_owner.RealNodeTaken, match=f"belongs to the cluster '{real_cluster.name}'"
    ):
        real_node.start(Neighbour(tmp_path))
    real_node.stop(Neighbour(tmp_path))
    assert output_of(real_cluster, make_pod().shell("echo untouched")) == "untouched\n"


def test_an_owner_lives_while_its_own_api_server_answers(
    real_cluster: Running, tmp_path: Path
) -> None:
    owner = node_owner.Owner(
        cluster=real_cluster.name,
        folder=str(tmp_path),
        server=real_cluster.server,
        ca_file=str(real_cluster.ca_file),
    )
    assert owner.is_alive()


@pytest.mark.parametrize("mutation", ["gone", "other authority"])
def test_an_owner_is_dead_when_nobody_or_a_successor_answers(
    real_cluster: Running, tmp_path: Path, mutation: str
) -> None:
    other = tmp_path / "ca.crt"
    if mutation == "other authority":
        other.write_text(Path("/etc/ssl/certs/ca-certificates.crt").read_text())
    owner = node_owner.Owner(
        cluster="old", folder=str(tmp_path), server=real_cluster.server, ca_file=str(other)
    )
    assert not owner.is_alive()
