"""Lines that tell a waiting person what happens, on standard error.

Standard output stays free for what a command answers, so that
`eval "$(python -m cluster env)"` works.
"""

import sys


def say(line: str) -> None:
    """Shows one line of progress at once."""
    print(line, file=sys.stderr, flush=True)
