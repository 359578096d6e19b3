"""``make clients-large``: how far CuPy, PyTorch and TensorFlow get on the pretended driver.

Some 8 GB of packages are installed once. Prints a line for each; ends with 1 where one of them
crashed, or got more of the driver than its cap.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.native.build import build
from tests.native.clients import CAP_MIB, PIECE_MIB, ROOT
from tests.native.container import Container
from tests.native.fake_gpu import FakeGPU
from tests.native.large_cases import FRAMEWORKS

import python_environment

MOST_SECONDS, MOST_CHARS = 400, 100
CUDA = 13020  # as new as PyTorch wants it


def tried(box: Container, python: Path, name: str) -> str:
    """What is wrong; empty: nothing. What it says is printed."""
    script = str(ROOT / "tests/native/large_cases.py")
    command = [str(python), script, name, str(PIECE_MIB)]
    done = box.gpu.run(command, seconds=MOST_SECONDS, **box.environment)
    if done.returncode:
        return f"ended with {done.returncode}: {done.stderr[-1000:]}"
    seen = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(f"{name}: {seen['said'].splitlines()[0][:MOST_CHARS]}; the driver gives ")
    sys.stdout.write(f"{seen['pieces'] * PIECE_MIB} of {CAP_MIB} MiB\n")
    return "" if seen["pieces"] == CAP_MIB // PIECE_MIB else "not the cap"


def main() -> int:
    """0: all of them are within their cap."""
    python = python_environment.ensure("clients-large", "CuPy, PyTorch and TensorFlow")
    native, wrong = build(), False
    with tempfile.TemporaryDirectory() as folder:
        for name in FRAMEWORKS:
            gpu = FakeGPU(Path(folder) / name / "gpu", native, options={"cuda": CUDA})
            try:
                found = tried(Container(gpu, Path(folder) / name, cap_mib=CAP_MIB), python, name)
            except subprocess.TimeoutExpired:
                found = "does not end"
            if found:
                wrong = True
                sys.stdout.write(f"{name}: {found}\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
