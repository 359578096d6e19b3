"""``make unlucky JOBS=300``: jobs that are wrong or have bad luck, and what kubectl says of them.

On a real kubelet with a pretended driver; needs root on Linux. Ends with 1 when one of them does
not read right. Prints one job of each kind as its owner sees it.
"""

import argparse
import os
import re
import statistics
import sys
import time
from pathlib import Path

from tests.api.caller import Caller
from tests.perf.machine import machine
from tests.unlucky.families import FAMILIES, generate
from tests.unlucky.looks import Look, look_at, places

from cluster import Settings, lifecycle
from cluster.progress import say
from demo import install

_NAME_SERVER = re.compile(r" on [\d.]+:53\b")  # of this machine, in the kubelet's words


def main() -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.unlucky", description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write what was seen, as Markdown")
    options = parser.parse_args()
    settings = Settings(name="unlucky", real_node=True, owner=os.getpid())
    running = lifecycle.up(settings, recreate=True)
    try:
        install.chart(running, image=install.images(running))
        admin = Caller(running.server, running.ca_file, running.token())
        began, looks = time.monotonic(), []
        with places(admin) as tenants:
            for look in look_at(running, tenants, generate(options.jobs, options.seed)):
                looks.append(look)
                if look.problem:
                    say(f"{look.family}: {look.problem}\n  {look.row}\n  {look.message}")
        text = report(looks, options.seed, time.monotonic() - began)
    finally:
        lifecycle.down(running.name)
    sys.stdout.write(text)
    if options.output is not None:
        options.output.write_text(text)
    return 1 if any(look.problem for look in looks) else 0


def report(looks: list[Look], seed: int, seconds: float) -> str:
    """What was seen, with one job of each kind."""
    wrong = sum(bool(look.problem) for look in looks)
    until, on = [look.seconds for look in looks], machine()
    lines = [
        f"# {len(looks)} wrong or unlucky jobs of {len(FAMILIES)} kinds, seed {seed}",
        "",
        f"{len(looks) - wrong} read right in one look, {wrong} did not; {seconds:.0f} s in all. "
        f"From kubectl apply until the final words: median {statistics.median(until):.1f} s, "
        f"longest {max(until):.1f} s (images, containers and time limits included).",
        "",
        f"Machine: {on['cores']} cores of {on['cpu']}, {on['memory_gib']} GiB, "
        f"Linux {on['kernel']}; Kubernetes {on['kubernetes']}, "
        "a real kubelet and containerd, a pretended driver.",
        "",
        "```",
    ]
    shown = set()
    for look in looks:
        if look.family not in shown:
            shown.add(look.family)
            lines += [look.row, *([f"    {look.message}"] if look.message else []), ""]
    return _NAME_SERVER.sub("", "\n".join([*lines[:-1], "```", ""]))


if __name__ == "__main__":
    sys.exit(main())
