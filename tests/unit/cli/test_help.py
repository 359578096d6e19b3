"""What only lists options imports nothing heavy."""

import json
import subprocess
import sys
from pathlib import Path

COMMANDS = [
    *(["simulate"], ["top", "gpus"], ["projects"], ["check"]),
    *(["project", "create"], ["project", "describe"], ["report"], ["idle"], ["usage"]),
    *(["top", "jobs"], ["submit"], ["advise"], ["sweep", "trials"], ["sweep", "export"]),
]
HEAVY = ["kubernetes", "rich", "numpy", "yaml", "msgspec", "orjson", "pydantic", "matplotlib"]


def test_help_of_commands_that_look_imports_nothing_heavy() -> None:
    script = (
        "import sys, json; from click.testing import CliRunner\n"
        "from gpu_scheduler.cli.root import app\n"
        "found = {}\n"
        f"for words in {COMMANDS!r}:\n"
        "    result = CliRunner().invoke(app, [*words, '--help'])\n"
        f"    there = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    found[' '.join(words)] = [result.exit_code, there]\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "operator")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {" ".join(words): [0, []] for words in COMMANDS}
