"""Completion, help and the programs: what they print, and that none of it imports much."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner
from tests.unit.cli.objects import job
from tests.unit.cli.server import Server, serving

from gpu_scheduler.cli.commands import completion
from gpu_scheduler.cli.commands.completion import candidates
from gpu_scheduler.cli.root import app

ROOT = Path(__file__).parents[3]
JOBS = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs"
HEAVY = (
    "aiohttp kopf kubernetes msgspec numpy orjson pydantic rich urllib3 uvloop yaml asyncio "
    "gpu_scheduler.api.gpujob gpu_scheduler.core.model gpu_scheduler.runtime"
).split()


def words(*typed: str) -> list[str]:
    return list(candidates(app, typed))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    items = [job("train", "Running"), job("train2"), job("x", "Failed")]
    with serving({f"GET {JOBS}": {"items": items}}) as made:
        monkeypatch.setenv("KUBECONFIG", made.kubeconfig(tmp_path))
        monkeypatch.setattr(completion, "PATIENCE_SECONDS", 60.0)
        yield made


def test_commands_with_a_line_of_help() -> None:
    assert words("su") == [
        "submit\tCreate a GPUJob, or print it.",
        "suspend\tStop a job, and keep it.",
        ":4",
    ]


def test_without_a_word_all_commands_are_offered() -> None:
    assert {"submit", "list", "logs"} <= {line.partition("\t")[0] for line in words("")}
    assert words()[-1] == ":4"


def test_options_and_their_values() -> None:
    assert [line.partition("\t")[0] for line in words("submit", "--gpu-m")] == [
        "--gpu-memory",
        "--gpu-models",
        ":4",
    ]
    assert words("list", "-o", "n") == ["name", ":4"]
    assert words("completion", "z") == ["zsh", ":4"]


def test_files_are_left_to_the_shell() -> None:
    assert words("submit", "-f", "") == [":0"]


def test_hidden_flags_are_not_offered() -> None:
    assert words("submit", "--service-t") == [":4"]


def test_names_of_jobs_come_from_the_cluster(server: Server) -> None:
    assert words("logs", "tr") == ["train\tRunning", "train2\tPending", ":4"]
    assert words("describe", "-n", "team-b", "tr") == [":4"], "there is none"
    assert words("suspend", "train", "tr") == ["train2\tPending", ":4"], "one is named already"


@pytest.mark.parametrize("code", [401, 403, 404, 500])
def test_any_error_offers_nothing(server: Server, code: int) -> None:
    server.answers[f"GET {JOBS}"] = code
    assert words("logs", "") == [":4"]


def test_a_server_that_is_silent_is_not_waited_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Event()

    def late(_: object) -> dict[str, list[object]]:
        assert told.wait(60)
        return {"items": [job("train", "Running")]}

    server.answers[f"GET {JOBS}"] = late
    monkeypatch.setattr(completion, "PATIENCE_SECONDS", 0.1)
    try:
        assert words("logs", "tr") == [":4"]
    finally:
        told.set()


def test_without_a_cluster_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert words("logs", "") == [":4"]


@pytest.mark.parametrize(
    "typed", [["\u00fc"], ["no-such-command", ""], ["logs", "x", "--tail", ""], ["--", ""]]
)
def test_odd_words_break_nothing(typed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert words(*typed)[-1] in (":4", ":0")


@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o nosort"), ("zsh", "#compdef"), ("fish", "complete ")]
)
@pytest.mark.parametrize("program", ["kubectl-gpu", "gpu-scheduler"])
def test_scripts_of_shells(shell: str, sign: str, program: str) -> None:
    runner = CliRunner()
    name = "kubectl gpu" if program == "kubectl-gpu" else program
    result = runner.invoke(app, ["completion", shell], prog_name=name)
    assert result.exit_code == 0
    assert sign in result.stdout and program in result.stdout
    assert f"_{program.upper().replace('-', '_')}_COMPLETE" in result.stdout
    assert runner.invoke(app, ["completion", "tcsh"]).exit_code == 2


def run(function: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One of the programs, and on standard error which of ``HEAVY`` it has imported."""
    script = (
        f"import sys, atexit; sys.argv = ['p', *{list(arguments)!r}]; "
        f"atexit.register(lambda: print(*({set(HEAVY)!r} & sys.modules.keys()), file=sys.stderr)); "
        f"from gpu_scheduler.main import {function}; {function}()"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "operator"), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("kubectl_gpu", ["--help"]),
        ("kubectl_gpu", ["submit", "--help"]),
        ("kubectl_gpu", ["list", "--help"]),
        ("kubectl_gpu", ["logs", "--help"]),
        ("kubectl_gpu", ["delete", "--help"]),
        ("kubectl_gpu", ["describe", "--help"]),
        ("kubectl_gpu", ["completion", "bash"]),
        ("kubectl_complete", [""]),
        ("kubectl_complete", ["submit", "--gp"]),
        ("kubectl_complete", ["list", "-o", ""]),
        ("main", ["--help"]),
    ],
)
def test_help_and_words_that_are_always_the_same_import_nothing_heavy(
    function: str, arguments: list[str]
) -> None:
    done = run(function, *arguments)
    assert (done.returncode, done.stderr.strip()) == (0, ""), done
    assert done.stdout.strip()


def test_the_test_above_would_see_it() -> None:
    done = run("kubectl_gpu", "submit", "x", "-i", "i", "-g", "1", "--dry-run")
    assert done.returncode == 0 and "pydantic" in done.stderr


@pytest.mark.parametrize("command", ["submit", "completion"])
def test_examples_in_a_help_have_lines_of_their_own(command: str) -> None:
    text = CliRunner().invoke(app, [command, "--help"], prog_name="kubectl gpu").stdout
    examples = [line for line in text.splitlines() if "kubectl gpu" in line][1:]
    assert len([e for e in examples if e.strip().startswith(("kubectl gpu", "source"))]) >= 3
    assert "\\b" not in text and "\b" not in text


def test_a_program_calls_itself_what_was_typed() -> None:
    for function, name in (("kubectl_gpu", "kubectl gpu"), ("main", "gpu-scheduler")):
        done = run(function, "suspend", "")
        assert done.returncode == 2 and done.stderr.startswith(f"{name}: ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script() -> None:
    done = run(
        "kubectl_gpu",
        _KUBECTL_GPU_COMPLETE="bash_complete",
        COMP_WORDS="kubectl-gpu ver",
        COMP_CWORD="1",
    )
    assert done.stdout == "plain,version\n"
