"""A part of the kubernetes package, imported alone, is the one that the whole package has."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BEFORE = "import kubernetes"
ALONE = """
with parts_alone():
    from kubernetes.client.rest import RESTClientObject
"""
AFTERWARDS = """
import kubernetes
assert kubernetes.client.rest.RESTClientObject is RESTClientObject
assert kubernetes.client.V1Pod(kind="Pod").kind == "Pod"
assert kubernetes.config.load_kube_config and kubernetes.watch.Watch
"""


@pytest.mark.long(always=True)
@pytest.mark.parametrize(
    "program",
    [
        (ALONE, "assert not {'kubernetes', 'kubernetes.config'} & sys.modules.keys()", AFTERWARDS),
        (ALONE, ALONE, "with parts_alone(): from kubernetes.config import kube_config", AFTERWARDS),
        (BEFORE, ALONE, "assert sys.modules['kubernetes'] is kubernetes", AFTERWARDS),
        ("import gpu_scheduler.kube.command_client", "assert 'urllib3' not in sys.modules"),
    ],
    ids=["alone", "several", "whole", "nothing"],
)
def test_a_part_is_imported_alone_and_the_package_is_whole_afterwards(
    program: tuple[str, ...],
) -> None:
    start = ("import sys", "from gpu_scheduler.kube.package_parts import parts_alone")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join((*start, *program))],
        env={"PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
