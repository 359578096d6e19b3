"""What people install for the command line is all that it imports; what is missing is one line."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from tests.unit.cli.server import kubeconfig

ROOT = Path(__file__).parents[3]
PLAN = {"numpy"}  # of the extra `plan`
NOT_THEIRS = ("gpu_scheduler.cli.commands.operator", "gpu_scheduler.cli.commands.agent")
IMPORTS = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import gpu_scheduler.cli, gpu_scheduler.manifests, gpu_scheduler.simulate
import gpu_scheduler.sweeps.commands, gpu_scheduler.kube.command_client
import kubernetes.client, kubernetes.config
packages = (
    gpu_scheduler.cli, gpu_scheduler.manifests, gpu_scheduler.simulate,
    gpu_scheduler.sweeps.commands,
)
for package in packages:
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name not in sys.argv[1:]:
            importlib.import_module(found.name)
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""
WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Gone())
from gpu_scheduler.main import app
app(sys.argv[2:], prog_name="kubectl gpu")
"""


def run(
    script: str, *arguments: str, kubeconfig: str = "/nowhere"
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={"PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long(always=True)
def test_every_import_is_in_the_extras_of_the_command_line() -> None:
    done = run(IMPORTS, *NOT_THEIRS)
    assert done.returncode == 0, done.stderr
    distributions = packages_distributions()
    needed = {
        name.lower().replace("_", "-")
        for module in json.loads(done.stdout)
        for name in distributions.get(module, ())
    }
    text = (ROOT / "requirements" / "cli.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))
    assert {"click", "kubernetes", "numpy"} <= needed
    assert needed <= pinned | PLAN


@pytest.mark.parametrize(
    ("module", "arguments", "extras"),
    [
        ("numpy", ("simulate",), "cli,plan"),
        ("kubernetes", ("list",), "cli"),
        ("yaml", ("list",), "cli"),
        ("yaml", ("sweep", "preview", "-f", "x"), "cli"),
    ],
)
def test_what_is_not_installed_is_named_in_one_line(
    module: str, arguments: tuple[str, ...], extras: str, tmp_path: Path
) -> None:
    done = run(WITHOUT, module, *arguments, kubeconfig=kubeconfig(1, tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert f"{module}" in done.stderr and f"[{extras}]" in done.stderr
