"""Who knows kubectl, Run:ai or Kueue types lines that are understood, or is told what does it."""

import click
import pytest
from click.testing import CliRunner

from gpu_scheduler.cli.habits import INSTEAD, SAME, InsteadError, translated
from gpu_scheduler.cli.root import COMMANDS, app

OURS = {
    "list jobs -A": "list -A",
    "list nodes": "top nodes",
    "list projects": "projects",
    "describe job train": "describe train",
    "describe pod train-0-x -o yaml": "describe pod/train-0-x -o yaml",
    "describe deployment api": "describe deployment/api",
    "describe project vision": "project describe vision",
    "describe job": "describe job",
    "describe project": "describe project",
    "delete job a b": "delete a b",
    "delete jobs --all": "delete --all",
    "delete job --no-wait": "delete job --no-wait",
    "logs job -f": "logs job -f",
    "logs job train -f": "logs train -f",
    "top node": "top nodes",
    "top job -w": "top jobs -w",
    "project list": "projects",
    "project show vision": "project describe vision",
    "project set vision": "config project vision",
    "get": "list",
    "get gpujobs -o wide": "list -o wide",
    "get job train -o yaml": "describe train -o yaml",
    "stop workload train": "suspend train",
    "training submit train -i x -g 1": "submit train -i x -g 1",
    "workspace submit nb -i x": "submit --interactive nb -i x",
    "workload describe train": "describe train",
    "training logs train --tail 5": "logs train --tail 5",
    "-n team-a list": "list -n team-a",
    "--context=c -p vision top gpus -w": "top gpus --context=c -p vision -w",
    "-A list jobs": "list -A",
    "help top gpus": "top gpus --help",
    "exec job train -- ls -n 5": "exec train -- ls -n 5",
    "submit job -i x": "submit job -i x",
    "--help": "--help",
    "": "",
}


@pytest.mark.parametrize("typed", OURS)
def test_what_it_means(typed: str) -> None:
    assert " ".join(translated(typed.split())) == OURS[typed]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_ours_alone_stays_what_it_is(name: str) -> None:
    assert translated([name]) == [name]
    assert translated([name, "x", "--help"]) == [name, "x", "--help"]


@pytest.mark.parametrize("words", SAME)
def test_what_it_becomes_is_there(words: tuple[str, ...]) -> None:
    context, command = click.Context(app), app
    for word in (each for each in SAME[words] if each[:1] != "-"):
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None, SAME[words]
        command = found  # type: ignore[assignment]
    assert words not in INSTEAD


@pytest.mark.parametrize("words", INSTEAD)
def test_what_is_not_done_here_is_answered_with_the_command_that_does_it(
    words: tuple[str, ...],
) -> None:
    with pytest.raises(InsteadError, match="^" + " ".join(words) + ": "):
        translated([*words, "x"])
    found = CliRunner().invoke(app, [*words, "x"], prog_name="kubectl gpu")
    assert (found.exit_code, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert INSTEAD[words] in found.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lst", "list"),
        ("submti x", "submit"),
        ("top nod", "top nodes"),
        ("project creat x", "project create"),
        ("sweep tirals x", "sweep trials"),
        ("config projct x", "config project"),
    ],
)
def test_a_typo_is_told_the_nearest_command(typed: str, meant: str) -> None:
    found = CliRunner().invoke(app, typed.split(), prog_name="kubectl gpu")
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.endswith(f"did you mean kubectl gpu {meant}?\n")


def test_what_is_near_nothing_is_told_where_they_are_listed() -> None:
    found = CliRunner().invoke(app, ["xyzzy"], prog_name="kubectl gpu")
    assert found.stderr == (
        "kubectl gpu: there is no command kubectl gpu xyzzy; kubectl gpu --help lists them\n"
    )
