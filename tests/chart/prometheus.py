"""Debian's Prometheus: promtool, and a server that scrapes as Prometheus Operator has it do.

Tests that ask for them fail where neither the machine has them nor the package can be fetched.
"""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from cluster import debian

_PATIENCE_SECONDS = 60.0  # on a busy machine; what is waited for is a state
Json = dict[str, Any]

# As Prometheus Operator labels the targets of a ServiceMonitor and of a PodMonitor.
TARGETS: dict[str, dict[str, str]] = {
    "operator": {
        "namespace": "gpu-system",
        "pod": "gpu-scheduler-7c9d-abcde",
        "service": "gpu-scheduler",
        "job": "gpu-scheduler",
        "endpoint": "http",
        "container": "operator",
        "instance": "10.0.0.1:8080",
    },
    "agent": {
        "namespace": "gpu-system",
        "pod": "gpu-scheduler-agent-x1y2z",
        "job": "gpu-system/gpu-scheduler-agent",
        "endpoint": "http",
        "container": "agent",
        "instance": "10.0.0.2:8081",
    },
    "dcgm": {
        "namespace": "gpu-operator",
        "pod": "nvidia-dcgm-exporter-q9w8e",
        "service": "nvidia-dcgm-exporter",
        "job": "nvidia-dcgm-exporter",
        "endpoint": "gpu-metrics",
        "container": "nvidia-dcgm-exporter",
        "instance": "10.0.0.2:9400",
    },
}


def promtool(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = debian.program("promtool", "prometheus")
    return subprocess.run([program, *arguments], input=given, capture_output=True, check=False)


class Prometheus:
    """A server's API."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._address}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False

    def series(self, query: str) -> list[dict[str, str]]:
        """The labels of what a query finds now."""
        return [each["metric"] for each in self.get("query", query=query)["result"]]


def until(
    found: Callable[[], bool],
    what: Callable[[], str],
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for something; ``what``: what is said where it does not come."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not found():
        assert not ended(), f"Prometheus has ended: {what()}"
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


@contextmanager
def running(folder: Path, rules: Json, honoring: Container[str], port: int) -> Iterator[Prometheus]:
    """A server that scrapes ``tests.chart.made_up`` at a port once a second.

    ``honoring``: targets whose own labels win.
    """
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    scrapes: Sequence[Json] = [
        {
            "job_name": name,
            "honor_labels": name in honoring,
            "metrics_path": f"/{name}",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}],
        }
        for name, labels in TARGETS.items()
    ]
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "rule_files": ["rules.yaml"], "scrape_configs": scrapes}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    log = folder / "log"
    with log.open("wb") as into:
        process = subprocess.Popen(
            [
                debian.program("prometheus", "prometheus"),
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--web.listen-address=127.0.0.1:0",
            ],
            stdout=into,
            stderr=into,
        )
    try:
        until(lambda: _address(log) != "", log.read_text, lambda: process.poll() is not None)
        server = Prometheus(_address(log))
        until(server.ready, log.read_text, lambda: process.poll() is not None)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def _address(log: Path) -> str:
    """Where it listens, by its log; empty: not yet."""
    for line in log.read_text().splitlines():
        if "Listening on" in line:
            return "http://" + line.partition("address=")[2].split()[0]
    return ""
