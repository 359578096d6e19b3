import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpu_scheduler import __version__
from gpu_scheduler.cli.starting import JsonFormatter
from gpu_scheduler.main import app

KUBECONFIG = {"KUBECONFIG": "/nowhere/config"}


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["version"])
    assert (result.exit_code, result.output) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"GPUSCHED_PLACEMENT": "both"}, "GPUSCHED_PLACEMENT"),
        ({"GPUSCHED_TYPO": "1"}, "GPUSCHED_TYPO"),
        ({"GPUSCHED_RETRY_SECONDS": "30"}, "GPUSCHED_RETRY_SECONDS"),
        ({}, "KUBECONFIG=/nowhere/config"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_the_start_with_one_line(
    env: dict[str, str], named: str
) -> None:
    result = CliRunner().invoke(app, ["operator"], env={**KUBECONFIG, **env})
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("gpu-scheduler: ")
    assert named in result.stderr


def test_help_needs_nothing_of_the_operator() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from gpu_scheduler.main import app; "
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0; "
        "print(*({'kopf', 'aiohttp', 'uvloop', 'msgspec'} & sys.modules.keys()))"
    )
    source = Path(__file__).parents[2] / "operator"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "\n"


def test_json_log_lines_are_json_whatever_is_said() -> None:
    try:
        raise ValueError('a "quoted"\nerror')
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, "f", 1, 'said "%s"\n', ("this",), sys.exc_info()
        )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["message"]) == ("ERROR", 'said "this"\n')
    assert 'a "quoted"\nerror' in said["error"]
