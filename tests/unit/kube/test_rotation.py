"""Certificates that are rotated under a running program, with a real TLS server on loopback."""

import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.kube.fake_server import FakeServer
from tests.unit.kube.issued import FIRST, SECOND, Issued
from tests.unit.kube.reflector_stage import PODS, Stage, on_node

from gpu_scheduler.kube import config, errors
from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.tls import TLS_MAX_AGE_SECONDS


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Cluster:
    """A server with a certificate, and the service account that the kubelet keeps for a pod."""

    def __init__(self, folder: Path, server: FakeServer, tls: ssl.SSLContext) -> None:
        self.server = server
        self.clock = Clock()
        self._tls = tls
        self._folder = folder
        self.mount = folder / "mount"
        self.mount.mkdir()
        self._projected = 0
        self.project(FIRST.authority)
        for name in ("ca.crt", "token", "namespace"):
            (self.mount / name).symlink_to(Path("..data") / name)

    def project(self, authority: str) -> None:
        """Write the files anew, the way the kubelet does: beside, then one symlink is swapped."""
        self._projected += 1
        fresh = self.mount / f"..{self._projected}"
        fresh.mkdir()
        (fresh / "ca.crt").write_text(authority)
        (fresh / "token").write_text("t")
        (fresh / "namespace").write_text("gpu-system")
        (self.mount / "..data_tmp").symlink_to(fresh.name)
        os.replace(self.mount / "..data_tmp", self.mount / "..data")

    def issue(self, issued: Issued) -> None:
        """From now on the server shows this certificate to who connects."""
        pair = self._folder / "server.pem"
        pair.write_text(issued.certificate + issued.key)
        self._tls.load_cert_chain(pair)

    def client(self) -> Client:
        address = urlsplit(self.server.url)
        environ = {
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }
        connection = config.load(environ, self.mount)
        return Client(connection, timing=Timing(self.clock, random=lambda: 0.0))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = tmp_path / "server.pem"
    pair.write_text(FIRST.certificate + FIRST.key)
    tls.load_cert_chain(pair)
    async with FakeServer(tls) as server:
        server.put(f"{PODS}/a", on_node())
        yield Cluster(tmp_path, server, tls)


async def test_a_rotated_authority_is_believed_without_a_restart(cluster: Cluster) -> None:
    async with cluster.client() as client:
        await client.get(f"{PODS}/a")
        cluster.issue(SECOND)
        cluster.project(SECOND.authority)
        cluster.server.cut_connections()
        assert (await client.get(f"{PODS}/a"))["metadata"]["name"] == "a"


async def test_files_that_come_after_the_servers_certificate_end_the_outage(
    cluster: Cluster,
) -> None:
    async with cluster.client() as client:
        await client.get(f"{PODS}/a")
        cluster.issue(SECOND)
        cluster.server.cut_connections()
        with pytest.raises(errors.Unavailable):
            await client.get(f"{PODS}/a", timeout_seconds=0.2)
        cluster.project(SECOND.authority)
        assert (await client.get(f"{PODS}/a"))["metadata"]["name"] == "a"


async def test_a_reflector_outlives_a_rotation_and_lists_once(cluster: Cluster) -> None:
    async with cluster.client() as client:
        stage = Stage(cluster.server, client)
        await stage.start_watching()
        cluster.issue(SECOND)
        cluster.project(SECOND.authority)
        cluster.server.put(f"{PODS}/b", on_node())
        await stage.handler.changes.until(lambda: len(stage.handler.pods) == 2)
        cluster.server.cut_connections()
        cluster.server.put(f"{PODS}/c", on_node())
        await stage.handler.changes.until(lambda: len(stage.handler.pods) == 3)
        assert stage.reflector.counts["list"] == 1
        await stage.end()


async def test_a_connection_that_is_open_stays_with_the_authority_that_it_was_opened_with(
    cluster: Cluster,
) -> None:
    async with cluster.client() as client:
        stage = Stage(cluster.server, client)
        await stage.start_watching()
        cluster.project(SECOND.authority)
        cluster.clock.now += TLS_MAX_AGE_SECONDS
        cluster.issue(SECOND)
        await client.get(f"{PODS}/a")
        cluster.server.put(f"{PODS}/b", on_node())
        await stage.handler.changes.until(lambda: len(stage.handler.pods) == 2)
        assert cluster.server.open_watches == 1
        await stage.end()


async def test_an_authority_that_was_taken_away_is_believed_no_more(cluster: Cluster) -> None:
    async with cluster.client() as client:
        await client.get(f"{PODS}/a")
        cluster.project(SECOND.authority)
        cluster.clock.now += TLS_MAX_AGE_SECONDS
        with pytest.raises(errors.Unavailable, match="certificate verify failed"):
            await client.request("GET", f"{PODS}/a", retry=False)


@pytest.mark.parametrize("text", ["", "half a", FIRST.authority[:300]])
async def test_files_that_are_no_certificates_change_nothing(cluster: Cluster, text: str) -> None:
    async with cluster.client() as client:
        cluster.project(text)
        cluster.clock.now += TLS_MAX_AGE_SECONDS
        await client.get(f"{PODS}/a")
        cluster.issue(SECOND)
        cluster.server.cut_connections()
        cluster.project(SECOND.authority)
        await client.get(f"{PODS}/a")


async def test_a_client_certificate_in_files_is_read_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Certificate and key are two files: between the two they are no pair."""
    (tmp_path / "ca").write_text(FIRST.authority)
    (tmp_path / "crt").write_text(FIRST.certificate)
    (tmp_path / "key").write_text(FIRST.key)
    connection = Connection(
        server=cluster.server.url,
        ca_file=tmp_path / "ca",
        certificate_file=tmp_path / "crt",
        key_file=tmp_path / "key",
    )
    async with Client(connection, timing=Timing(cluster.clock)) as client:
        await client.get(f"{PODS}/a")
        (tmp_path / "crt").write_text(SECOND.certificate)
        cluster.clock.now += TLS_MAX_AGE_SECONDS
        await client.get(f"{PODS}/a")
        assert len(cluster.server.peers) == 1
        (tmp_path / "key").write_text(SECOND.key)
        cluster.clock.now += TLS_MAX_AGE_SECONDS
        await client.get(f"{PODS}/a")
        assert len(cluster.server.peers) == 2
