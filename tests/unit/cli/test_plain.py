"""What tenants write cannot command the terminal of whoever looks at it."""

from typing import Any

import pytest
from tests.terminal import run

from gpu_scheduler.cli.shown import plain

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ESCAPE, "^[]0;owned^G^[[2J"),
        ("a\r\x08b", "a^M^Hb"),
        ("\x7f\x9b31m", "^?\\u009b31m"),
        ("ok \u202egnp.exe", "ok \\u202egnp.exe"),
        ("two\nlines\tand ▇ ü 模", "two\nlines\tand ▇ ü 模"),
    ],
)
def test_what_would_command_a_terminal_is_spelt(text: str, shown: str) -> None:
    assert plain(text) == shown


SCRIPT = """
import sys
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import print_table, say
from gpu_scheduler.cli.holders.bars import Piece, print_lines, print_text
text = sys.argv[1].encode().decode("unicode_escape")
say(text)
print_table(PrintedTable(["NAME"], [[text]]))
print_text(text)
print_lines([[[Piece(text, "red")]]])
"""


def test_on_a_terminal_too(tmp_path: Any) -> None:
    import sys
    from pathlib import Path

    source = Path(__file__).parents[3] / "operator"
    typed = [sys.executable, "-c", SCRIPT, r"\x1b]0;owned\x07"]
    shown, code = run(typed, {"PYTHONPATH": str(source)}, 80)
    assert code == 0, shown
    assert shown.count("^[]0;owned^G") == 4
    assert "\x1b]0" not in shown and "\x07" not in shown
