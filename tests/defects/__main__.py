"""``make defects``: small defects put into the code one after the other; do the tests find each?

A copy of the working tree gets them, never the tree itself. Ends with 0 only if all are found.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from tests.defects.catalogue import DEFECTS, Defect
from tests.defects.trial import TrialError, Verdict, trial

ROOT = Path(__file__).parents[2]


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.defects", description=__doc__)
    names = [defect.name for defect in DEFECTS]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help="these alone"
    )
    parser.add_argument(
        "--tests", nargs="+", metavar="PATH", help="look here alone, and not in the whole tier"
    )
    parser.add_argument(
        "--quick", action="store_true", help="look in each one's first tests, not in the tier"
    )
    parser.add_argument(
        "--tests-from", type=Path, metavar="FOLDER", help="with the tests of another checkout"
    )
    parser.add_argument(
        "-n", type=int, default=os.cpu_count() or 1, metavar="WORKERS", help="for whole tiers"
    )
    parser.add_argument(
        "--test-seconds",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="a test that takes longer, and without the defect does not, has found it",
    )
    parser.add_argument("--list", action="store_true", help="show the defects and what they do")
    return parser.parse_args()


def _listed(defect: Defect) -> str:
    was, becomes = (" ".join(text.split()) for text in (defect.text, defect.slip))
    return (
        f"{defect.name} ({defect.file})\n  {was}\n  -> {becomes or '(left out)'}\n  {defect.harm}"
    )


def _row(verdict: Verdict) -> str:
    by = verdict.found_by or "FOUND BY NONE"
    return f"{verdict.defect.name:<30} {verdict.seconds:7.1f} s  {by}"


def main() -> int:
    """Try the defects; answers the exit code."""
    options = _arguments()
    chosen = [defect for defect in DEFECTS if defect.name in options.only]
    if options.list:
        say("\n\n".join(map(_listed, chosen)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = untold = 0
    with trial(
        ROOT, tests_from=options.tests_from, workers=options.n, test_seconds=options.test_seconds
    ) as copy:
        say(f"{'defect':<30} {'processor':>9}  found by")
        for defect in chosen:
            tests, whole = options.tests or defect.first, not (options.tests or options.quick)
            try:
                verdict = copy.of(defect, tests, whole=whole)
            except TrialError as error:
                untold += 1
                say(f"{defect.name:<30} NOT TOLD: {error}")
                continue
            found += verdict.found_by is not None
            say(_row(verdict))
    say(f"{found} of {len(chosen)} found" + (f", {untold} not told" if untold else ""))
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
