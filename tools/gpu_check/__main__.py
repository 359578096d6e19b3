"""``python3 -m gpu_check``: the command line of the check.

Exit codes: 0 everything that ran held, 1 something did not, 2 it could not run, with the reason.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpu_check.boxes import BoxMaker
from gpu_check.building import ROOT, build, require_compiler
from gpu_check.findings import CannotRunError
from gpu_check.frameworks import versions
from gpu_check.libraries import find_driver
from gpu_check.machine import Machine, look
from gpu_check.plan import DEFAULT_CAP_MIB, Plan, require_room
from gpu_check.pretended import pretend_driver
from gpu_check.probes import Bench, ProbeStarter
from gpu_check.report import Table, all_held, default_name, report, write

HELD, NOT_HELD, CANNOT_RUN = 0, 1, 2


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="gpu-check", description="Check caps on device memory on this machine's NVIDIA driver."
    )
    parser.add_argument("--cap-mib", type=int, default=DEFAULT_CAP_MIB, help="default %(default)s")
    parser.add_argument("--device", help="number or UUID, as CUDA_VISIBLE_DEVICES has it")
    parser.add_argument("--json", type=Path, help="the report; default: one in docs/measurements")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter with CuPy, PyTorch or JAX"
    )
    parser.add_argument("--fake", action="store_true", help="on a pretended driver")
    parser.add_argument(
        "--without-library", action="store_true", help="leave libgpucap out: the check must fail"
    )
    return parser.parse_args(words)


def check(options: argparse.Namespace, folder: Path) -> int:
    """Run everything and write both outputs.

    Raises:
        CannotRunError: not here.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    require_compiler()
    driver = pretend_driver(folder / "device") if options.fake else find_driver()
    os.environ.update(driver.environment)  # NVML in this process reads some of them, too
    machine, nvml = look(driver, device=options.device, pretended=options.fake)
    require_room(nvml, machine, options.cap_mib)
    path = report_path(options, machine, began)
    programs = build(folder, driver.cuda)
    frameworks = versions(options.python)
    make_box = BoxMaker(
        folder,
        None if options.without_library else programs.library,
        {**driver.environment, "CUDA_VISIBLE_DEVICES": machine.uuid},
    )
    bench = Bench(ProbeStarter(programs), make_box, nvml, options.cap_mib)
    plan = Plan(machine, bench, options.python, frameworks)
    table, findings = Table(sys.stdout), []
    table.head(machine)
    for finding in plan.findings():
        table.line(finding)
        findings.append(finding)
    seconds = time.monotonic() - clock
    table.foot(findings, seconds)
    if path:
        content = report(
            machine,
            findings,
            cap_mib=options.cap_mib,
            frameworks=frameworks,
            began=began,
            seconds=seconds,
        )
        write(path, content)
        print(f"report: {path}")
    return HELD if all_held(findings) else NOT_HELD


def report_path(options: argparse.Namespace, machine: Machine, began: datetime) -> Path | None:
    """Where the report goes; None: nowhere, because what is pretended is no measurement.

    Raises:
        CannotRunError: it could not be written there after all the work.
    """
    path: Path | None = options.json
    if path is None and not options.fake:
        path = ROOT / "docs" / "measurements" / default_name(machine, began)
    if path and not os.access(path.absolute().parent, os.W_OK):
        raise CannotRunError(f"{path.parent} is no folder to write to: say --json FILE")
    return path


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    options = arguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            return check(options, Path(folder))
    except (CannotRunError, OSError) as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main())
