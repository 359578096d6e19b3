"""For which architectures this machine can build images: whose programs it can run.

Measured by running one: an ELF file of two instructions, which ends with 0. Another
architecture's runs where the kernel hands it to an emulator (binfmt_misc), as Debian's package
qemu-user-static has it.
"""

import struct
import subprocess
import tempfile
from pathlib import Path

# exit(0): the number of the system call, its argument, the call.
_CODE = {
    "amd64": (62, bytes.fromhex("b83c00000031ff0f05")),
    "arm64": (183, bytes.fromhex("000080d2a80b80d2010000d4")),
}
_BASE = 0x400000
_HEADERS = 64 + 56


def probe(architecture: str) -> bytes:
    """The program."""
    machine, code = _CODE[architecture]
    size = _HEADERS + len(code)
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    header = struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return identity + header + segment + code


def runs(architecture: str) -> bool:
    """Does a program of this architecture run here?"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe"
        path.write_bytes(probe(architecture))
        path.chmod(0o700)
        try:
            return subprocess.run([path], capture_output=True).returncode == 0
        except OSError:
            return False


def buildable(asked: str = "") -> tuple[tuple[str, ...], dict[str, str]]:
    """Architectures that images are built for, and of the others why not.

    Args:
        asked: names with commas between them; empty = all.
    """
    wanted = asked.split(",") if asked else [*_CODE]
    why_not = {each: f"not among ARCHITECTURES={asked}" for each in _CODE if each not in wanted}
    for each in _CODE:
        if each in wanted and not runs(each):
            why_not[each] = (
                "its programs do not run here; Debian's qemu-user-static with binfmt-support "
                "lets them run"
            )
    return tuple(each for each in _CODE if each not in why_not), why_not
