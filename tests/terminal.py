"""A terminal that people sit at: runs a command there, and keeps what it shows.

The command's output is a pseudo-terminal, so it has colours and a width. ``picture`` draws what was
shown as SVG, for the docs.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
# Rich's own template, without the fonts that it fetches from elsewhere.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command left on the screen.

    Attributes:
        command: as it was typed.
        raw: with colours.
        code: how it ended.
    """

    command: str
    raw: str
    code: int

    @property
    def text(self) -> str:
        """Without colours."""
        return _ANSI.sub("", self.raw)


@dataclass(slots=True)
class Terminal:
    """A shell's user.

    Attributes:
        environment: of every command.
        columns: how wide the terminal is.
        shown: what has been done so far.
    """

    environment: Mapping[str, str]
    columns: int = 100
    shown: list[Shown] = field(default_factory=list)

    def type(self, command: str, *, code: int | None = 0, seconds: float = 120) -> str:
        """Run a command; what it shows, without colours.

        Raises:
            AssertionError: it ended otherwise than by ``code``; None: however it ends.
        """
        raw, ended = run(["sh", "-c", command], self.environment, self.columns, seconds)
        self.shown.append(Shown(command, raw, ended))
        assert code in (ended, None), f"$ {command}\n{raw}\n({ended})"
        return self.shown[-1].text


def run(
    command: Sequence[str], environment: Mapping[str, str], columns: int, seconds: float = 120
) -> tuple[str, int]:
    """What a command shows on a terminal, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={"TERM": "xterm-256color", **environment},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # nobody has the other end open any more
                break
            if not piece:
                break
            pieces.append(piece)
        os.close(ours)
        code = process.wait(seconds)
    return _written_over(b"".join(pieces).decode(errors="replace")), code


def _written_over(text: str) -> str:
    """What stays of lines that a program begins anew, as those do that show progress."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def picture(shown: Sequence[Shown], columns: int, title: str) -> str:
    """A terminal's window as SVG."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=columns, file=open(os.devnull, "w"), color_system="256")
    with console.file:
        for each in shown:
            console.print(Text.assemble(("$ ", "bold green"), (each.command, "bold")))
            console.print(Text.from_ansi(each.raw.rstrip("\n")))
            console.print()
        return console.export_svg(title=title, code_format=_SVG, unique_id="gpu")
