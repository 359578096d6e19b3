"""What the pages tell people to type is what the programs take: objects, and commands.

Objects are judged by the operator's rules, or made ours where pods ask by themselves. Commands are
parsed by the commands themselves, and not run.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.unit.docs.pages import ROOT, blocks, name_of, pages, prose

from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.validate import class_problems, problems, project_problems, read
from gpu_scheduler.cli.root import app
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.manifests.rendering import rendered

PAGES = [page for page in pages() if "adr" not in page.parts and "reference" not in page.parts]
GUIDES = {
    *("index", "start", "concepts", "researchers", "owners", "troubleshooting", "comparison"),
    *("moving-queues", "questions"),
}
KINDS: dict[str, Any] = {
    "GPUJob": (GPUJobSpec, lambda name, spec: problems(name, "team-a", spec)),
    "GPUProject": (GPUProjectSpec, project_problems),
    "GPUClass": (GPUClassSpec, lambda name, spec: class_problems(spec)),
}

OTHERS = ("Ingress", "HTTPRoute")  # of which we know nothing


def objects(page: Path) -> Iterator[dict[str, Any]]:
    for language, text in blocks(page.read_text(encoding="utf-8")):
        if language == "yaml":
            yield from (each for each in yaml.safe_load_all(text) if "kind" in each)


def wrong(body: dict[str, Any]) -> list[str]:
    """What is wrong with an object of ours, or with pods that ask by themselves."""
    if body["kind"] in OTHERS:
        return []
    if body["kind"] not in KINDS:
        text = rendered(yaml.safe_dump(body), Installation(CapImage("scheduler:1")), "page")
        return [] if "gpu-scheduler.io/asked" in text else ["no pod of it asks for a share"]
    model, judge = KINDS[body["kind"]]
    spec = read(model, body["spec"])
    return [str(each) for each in (spec if isinstance(spec, tuple) else judge(name(body), spec))]


def name(body: dict[str, Any]) -> str:
    return str(body["metadata"]["name"])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_object_on_a_page_is_accepted(page: Path) -> None:
    assert [(name(body), found) for body in objects(page) if (found := wrong(body))] == []


def test_the_guides_show_whole_objects_of_each_kind() -> None:
    guides = [page for page in PAGES if page.stem in GUIDES and page.parent.name == "docs"]
    assert {page.stem for page in guides} == GUIDES
    text = [block for page in guides for block in blocks(page.read_text(encoding="utf-8"))]
    shown = [body for page in guides for body in objects(page)]
    assert len(shown) == sum(language == "yaml" for language, _ in text)
    assert {"GPUJob", "GPUProject", "Deployment"} <= {body["kind"] for body in shown}


def test_a_wrong_object_is_seen() -> None:
    job = {"kind": "GPUJob", "metadata": {"name": "a"}, "spec": {"image": "i", "gpu": 1.5}}
    assert "whole numbers" in wrong(job)[0]
    assert wrong({**job, "spec": {"image": "i", "gpus": 1}})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    assert wrong(pod)


def typed(page: Path) -> Iterator[list[str]]:
    """The words behind `kubectl gpu` of each line that is to be typed."""
    for language, text in blocks(page.read_text(encoding="utf-8")):
        if language == "yaml":
            continue
        for line in text.replace("\\\n", " ").split("\n"):
            if found := re.match(r"\s*(?:\$ )?kubectl gpu (.*)", line):
                yield words(found[1])


def words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
    lexer.commenters, lexer.whitespace_split = "#", True
    found = list(lexer)
    end = next((i for i, word in enumerate(found) if word in ("|", ">")), len(found))
    return found[:end]


def parsed(line: list[str]) -> click.Context:
    """The context in which the command would run.

    Raises:
        click.UsageError: the command would refuse the line.
    """
    command: click.Command = app
    context, rest = root(), list(line)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        word = rest.pop(0)
        found = command.get_command(context, word)
        if found is None:
            raise click.UsageError(f"there is no command {word}")
        command = found
        if isinstance(command, click.Group):
            context = click.Context(command, context, info_name=word)
    return command.make_context(line[0], rest, parent=None if command is app else context)


def root() -> click.Context:
    """As the program makes it: commands keep the names of their help option from it."""
    return click.Context(app, info_name="kubectl gpu", **app.context_settings)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_on_a_page_is_taken(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in typed(page):
        for word in line:  # files that an option wants to be there
            if re.fullmatch(r"[\w./-]+\.(ya?ml|csv)", word) and not Path(word).is_absolute():
                (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / word).touch()
        try:
            parsed(line)
        except click.exceptions.Exit as done:  # --help
            assert done.exit_code == 0
        except click.UsageError as error:
            pytest.fail(f"kubectl gpu {shlex.join(line)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_a_sentence_names_is_there(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    for named in re.findall(r"`kubectl gpu ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", text):
        command = app.get_command(root(), named[0])
        assert command is not None, named
        if isinstance(command, click.Group) and named[1]:
            assert command.get_command(click.Context(command, root()), named[1]) is not None, named


def test_commands_are_found_and_wrong_ones_are_seen() -> None:
    found = [line for page in PAGES for line in typed(page)]
    assert len(found) > 100
    assert {"submit", "why", "check", "simulate", "fit", "sweep"} <= {line[0] for line in found}
    for line in ("list --no-such-option", "no-such-command", "describe a b", "why", "fit -g"):
        with pytest.raises(click.UsageError):
            parsed(line.split())
    assert words("why a -n b   # the reason") == ["why", "a", "-n", "b"]
    assert words("render -f - | kubectl apply -f -") == ["render", "-f", "-"]


def test_files_and_targets_that_commands_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for _, block in blocks(text) for line in block.split("\n")]
        for line in lines:
            if found := re.match(r"(?:\$ )?make ([a-z-]+)", line.strip()):
                assert found[1] in targets, (name_of(page), line)
            for file in re.findall(r"(?<![\w/])(?:examples|charts|hack)/[\w./-]+\w", line):
                assert (ROOT / file).exists(), (name_of(page), line)
