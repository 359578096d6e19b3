"""The chart as helm renders it, without a cluster."""

import subprocess
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from cluster import build

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
NAMESPACE = "gpu-system"

Object = dict[str, Any]


class Render(Protocol):
    """Renders the chart with ``--set`` arguments."""

    def __call__(self, *values: str) -> list[Object]: ...


@pytest.fixture(scope="session", autouse=True)
def _programs() -> None:
    build.ensure(("core", "check"))


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [build.binary("helm"), *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def render() -> Render:
    def rendered(*values: str) -> list[Object]:
        settings = [part for value in values for part in ("--set", value)]
        settings += ["--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"]
        answer = helm("template", "gpu-scheduler", str(CHART), "-n", NAMESPACE, *settings)
        assert answer.returncode == 0, answer.stderr
        return [document for document in yaml.safe_load_all(answer.stdout) if document]

    return rendered


@pytest.fixture(scope="session")
def rules(render: Render) -> Object:
    """What the chart's PrometheusRule says."""
    (found,) = (
        each
        for each in render("metrics.prometheusRule.enabled=true")
        if each["kind"] == "PrometheusRule"
    )
    spec: Object = found["spec"]
    return spec


@pytest.fixture(scope="session")
def objects(render: Render) -> list[Object]:
    """Everything that the chart makes by default."""
    return render()
