from typing import Any

import pytest
from tests.e2e.pods import created, make_pod, wait_for_phase

from cluster import Running
from demo import install


@pytest.fixture(scope="module")
def operator_image(real_cluster: Running) -> str:
    """The operator's image on the node, by its tag."""
    install.images(real_cluster)
    return f"{install.REPOSITORY}:{install.TAG}"


def restricted(image: str, *arguments: str) -> dict[str, Any]:
    """A pod that passes the restricted Pod Security level and may write nowhere."""
    pod = make_pod("image").obj()
    container = pod["spec"]["containers"][0]
    container["image"] = image
    container["command"] = ["/opt/venv/bin/python", *arguments]
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return pod


def test_the_operator_starts_as_nobody_on_a_read_only_file_system(
    real_cluster: Running, operator_image: str
) -> None:
    script = "import os, gpu_scheduler.main, kopf, aiohttp, msgspec, orjson; print(os.getuid())"
    pod = restricted(operator_image, "-c", script)
    with created(real_cluster, pod) as name:
        wait_for_phase(real_cluster, name, "Succeeded")
        assert real_cluster.kubectl("logs", name).stdout == "65532\n"


def test_what_is_unchanged_is_not_built_again(operator_image: str) -> None:
    first = install.build_images()
    made = [path.stat().st_mtime_ns for path in first]
    assert install.build_images() == first
    assert [path.stat().st_mtime_ns for path in first] == made
