"""docs/is-my-job-working.md shows what the commands print of the three jobs, to the letter."""

import re
import shlex
from pathlib import Path

from tests.unit.cli.use_cluster import calling, three_jobs
from tests.unit.docs.pages import DOCS, blocks

PAGE = (DOCS / "is-my-job-working.md").read_text(encoding="utf-8")


def shown() -> list[tuple[str, str]]:
    """Each command of the page that has an output, and that output."""
    found = []
    for language, text in blocks(PAGE):
        if language == "console":
            command, _, output = text.partition("\n")
            found.append((command.removeprefix("$ kubectl gpu "), output))
    return found


def test_each_output_on_the_page_is_what_its_command_prints(tmp_path: Path) -> None:
    with calling(three_jobs(), tmp_path) as call:
        for command, output in shown():
            assert call(*shlex.split(command)).output == output, command
    named = [command.split()[0] for command, _ in shown()]
    assert named == ["top", "report", "idle", "report", "submit", "report"]


def test_every_rule_that_the_page_names_is_said_in_an_output() -> None:
    outputs = "".join(output for _, output in shown())
    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", PAGE)) <= set(re.findall(r"[A-Z_]{4,}", outputs))
