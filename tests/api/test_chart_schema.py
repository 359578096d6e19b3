"""Everything that the chart renders fits the API server's own schemas, field by field."""

import subprocess
from pathlib import Path

import pytest
import yaml
from tests.api.openapi_schemas import FILE_TEMPLATE, write_schemas

from cluster import Running, build

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
EVERYTHING = (
    "--set=replicaCount=3",
    "--set=rbac.inventoryReaders={system:authenticated}",
    "--set=admission.trustedUsers={backup}",
    "--set=nodeSelector.pool=system",
    "--set=tolerations[0].operator=Exists",
    "--set=extraEnv[0].name=A,extraEnv[0].value=b",
    "--set=podDisruptionBudget.minAvailable=50%",
)


@pytest.fixture(scope="module")
def schemas(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Schemas of every API version in the chart."""
    build.ensure(("check",))
    folder = tmp_path_factory.mktemp("schemas")
    used = {document["apiVersion"] for document in yaml.safe_load_all(rendered(control_plane))}
    with control_plane.client() as client:
        assert write_schemas(client.get, used, folder) > len(used)
    return folder


def rendered(control_plane: Running, *values: str) -> str:
    return control_plane.helm("template", "gpu-scheduler", str(CHART), *values).stdout


def kubeconform(schemas: Path, manifests: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            build.binary("kubeconform"),
            "-strict",
            "-summary",
            "-schema-location",
            f"{schemas}/{FILE_TEMPLATE}",
        ],
        input=manifests,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_the_chart_fits_the_schemas(
    control_plane: Running, schemas: Path, values: tuple[str, ...]
) -> None:
    answer = kubeconform(schemas, rendered(control_plane, *values))
    assert answer.returncode == 0, answer.stdout
    assert "Invalid: 0, Errors: 0, Skipped: 0" in answer.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("minAvailable: 1", "minimumAvailable: 1"),
        ("replicas: 2", "replicas: two"),
        ("scope: Namespaced\n  names:", "scope: Namespaced\n  nmaes:"),
        ("failurePolicy: Fail", "failurePolicies: Fail"),
    ],
)
def test_a_wrong_field_is_noticed(
    control_plane: Running, schemas: Path, right: str, wrong: str
) -> None:
    manifests = rendered(control_plane)
    assert right in manifests
    answer = kubeconform(schemas, manifests.replace(right, wrong))
    assert answer.returncode == 1
    assert "Invalid: 0" not in answer.stdout
