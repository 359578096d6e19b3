"""What expressions of ``resultFrom.logRegex`` cost at worst: ``python -m tests.perf.log_patterns``.

Random expressions that mean ill (counted repetitions inside each other, alternations that overlap)
on lines that nearly match. Prints the dearest of those that are taken: instructions of RE2, CPU to
read it, of a line, and of a whole log, which has two seconds. Needs no cluster.
"""

import argparse
import sys
import time
from collections.abc import Callable
from random import Random

import re2

from gpu_scheduler.api.log_regex import LINE_CHARS, LogRegexError, compiled
from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.runtime.log_search import search

_PIECES = ("a", "b?", ".", r"\pL", r"\w", "[ab]", "(?:a|ab)", "(?:a|a|b)", "")
_LINES = ("a" * LINE_CHARS, "ab" * (LINE_CHARS // 2), "é" * LINE_CHARS)
KNOWN = "(?:(?:(?:(?:a{0,30}){0,30}b?)c?){0,1}d?)*val=([0-9.]+)"


def hostile(random: Random) -> str:
    """An expression."""
    pattern = random.choice(_PIECES)
    for _ in range(random.randint(1, 5)):
        most = random.choice(["", str(random.randint(1, 60))])
        how = random.choice([f"{{0,{most}}}", "*", "+", "?"])
        piece, other = random.choice(_PIECES), random.choice(_PIECES)
        pattern = f"(?:{pattern}{piece}|{other}){how}"
    return f"{pattern}val=([0-9.]+)"


def cpu(work: Callable[..., object], *arguments: object) -> float:
    """Seconds that it takes."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def main() -> None:
    """Try, and print the dearest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expressions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random, refused = Random(options.seed), 0
    dearest: list[tuple[float, str, str]] = []
    for pattern in (KNOWN, *(hostile(random) for _ in range(options.expressions))):
        try:
            find = compiled(pattern, "loss")
        except LogRegexError:
            refused += 1
            continue
        dearest.append(max((cpu(find, line), pattern, line) for line in _LINES))
    dearest.sort(reverse=True)
    sys.stdout.write(f"{refused} of {options.expressions + 1} refused\n")
    for seconds, pattern, line in dearest[:3]:
        size = re2._Regexp(pattern, re2.Options()).programsize
        read = 1000 * cpu(compiled, pattern, "loss")
        log = "\n".join([line] * 200).encode()
        whole = cpu(search, log, pattern, Objective("loss"))
        sys.stdout.write(
            f"{size:5} instructions, read in {read:5.1f} ms, a line {1000 * seconds:6.1f} ms, "
            f"a log {whole:5.2f} s: {pattern}\n"
        )


if __name__ == "__main__":
    main()
