"""What a new user types, from installing the command line to deleting the last job.

``RECORD=1`` writes what was shown into docs/first-session.md and its picture. Without it the page
is checked: it shows these commands, in this order. What changes from run to run (ages, addresses,
names of pods) is not compared, what the commands say is.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.waits import until
from tests.terminal import Shown, Terminal, picture

from cluster import Running

ROOT = Path(__file__).parents[2]
PAGE, PICTURE = ROOT / "docs" / "first-session.md", ROOT / "docs" / "first-session.svg"
RECORD = bool(os.environ.get("RECORD"))
TEAM = "vision"
IMAGE = "gpu-scheduler/quickstart:1"
BEGIN, END = "<!-- recorded: begin -->\n", "<!-- recorded: end -->\n"


@pytest.fixture
def terminal(operated: Running, tmp_path: Path) -> Iterator[Terminal]:
    """With kubectl, and a kubeconfig of one's own; nothing is left in the cluster."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(operated.kubeconfig.read_text())
    kubeconfig.chmod(0o600)
    path = (tmp_path / "bin", operated.binary("kubectl").parent, ROOT / ".venv/bin")
    environment = {
        # Fetching is no part of what is shown, nor is byte code of what no command imports.
        "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip"),
        "PIP_NO_COMPILE": "1",
        **{k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")},
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
        "KUBECONFIG": str(kubeconfig),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
        "LANG": "C.UTF-8",
    }
    yield Terminal(environment)
    operated.kubectl("delete", "gpuproject", TEAM, "--ignore-not-found")
    operated.kubectl("delete", "namespace", TEAM, "--ignore-not-found", "--wait=false")


def settle(terminal: Terminal, command: str, wanted: str) -> str:
    """Look until it shows what is wanted; what was seen on the way is not kept."""

    def seen() -> str:
        text = terminal.type(command, code=None)
        if not re.search(wanted, text):
            terminal.shown.pop()
            return ""
        return text

    return str(until(seen, f"{command} shows {wanted}"))


def test_a_new_user_gets_from_nothing_to_answers(terminal: Terminal, tmp_path: Path) -> None:
    type = terminal.type
    assert "kubectl-gpu" in type(f"cd {ROOT} && pipx install '.[cli,plan]'", seconds=600)
    assert "Usage: kubectl gpu" in type("kubectl gpu --help")
    type(f"kubectl create namespace {TEAM}")
    type(f"kubectl gpu project create {TEAM} --quota 1 --limit 1 --namespace {TEAM}")
    type(f"kubectl config set-context --current --namespace {TEAM}")
    assert "MISSING" not in type("kubectl gpu check")

    work = "--command -- quickstart 600"
    type(f"kubectl gpu submit notebook -i {IMAGE} -g 0.5 --interactive {work}")
    type(f"kubectl gpu submit train -i {IMAGE} -g 0.3 {work}")
    type(f"kubectl gpu submit big -i {IMAGE} -g 1 {work}")
    all_told = "notebook .*Running", "train .*Running", "big .*Pending .*WaitingForQuota"
    settle(terminal, "kubectl gpu list", "".join(rf"(?=[\s\S]*{each})" for each in all_told))
    why = settle(terminal, "kubectl gpu why big", r"holds\s+0\.8")  # once it counts both
    assert "WaitingForQuota" in why
    assert "estimate" in why.lower()
    top = type("kubectl gpu top gpus")
    assert re.search(r"0\.80", top) and "notebook" in top and "train" in top
    assert "step" in settle(terminal, "kubectl gpu logs train --tail=3", "step")

    search = "--param lr=0.1,0.01 --command -- quickstart 1"
    type(f"kubectl gpu submit search -i {IMAGE} -g 0.1 --parallelism 2 {search}")
    trials = settle(
        terminal, "kubectl gpu sweep trials search", r"(?s)Succeeded +0\.1\b.*Succeeded +0\.01\b"
    )
    assert trials.count("Succeeded") + trials.count("succeeded") == 2

    file = tmp_path / "bigger.yaml"
    type(f"kubectl gpu submit bigger -i {IMAGE} -g 0.5 --dry-run=client -o yaml > {file}")
    simulated = type(f"kubectl gpu simulate -f {file}")
    assert "bigger" in simulated and "Would wait" in simulated
    type("kubectl gpu suspend notebook")
    settle(terminal, "kubectl gpu list", r"notebook .*Suspended")
    settle(terminal, f"kubectl gpu simulate -f {file}", "Would start")  # once its pod has gone
    type("kubectl gpu delete notebook train big search")
    settle(terminal, "kubectl gpu list", r"No jobs")
    publish(terminal, tmp_path)


def publish(terminal: Terminal, folder: Path) -> None:
    """Write the page, or compare what it shows with what was typed."""
    shown = [tidy(each, folder) for each in terminal.shown]
    if RECORD:
        text = PAGE.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        blocks = "".join(
            f"```console\n$ {each.command}\n{each.text.rstrip()}\n```\n\n" for each in shown
        )
        PAGE.write_text(f"{before}{BEGIN}{blocks}{END}{after}")
        kept = [each for each in shown if re.search(r"gpu (list|why|top)", each.command)][:3]
        PICTURE.write_text(picture(kept, terminal.columns, "kubectl gpu"))
    typed = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.M)
    assert typed == [each.command for each in shown], "RECORD=1 writes the page anew"


def tidy(each: Shown, folder: Path) -> Shown:
    """Without what is of this machine alone."""
    return Shown(
        each.command.replace(f"cd {ROOT} && ", "").replace(f"{folder}/", ""),
        each.raw.replace(f"{folder}/", "~/").replace(str(folder), "~").replace(str(ROOT), "."),
        each.code,
    )
