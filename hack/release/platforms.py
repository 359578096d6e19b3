"""For which architectures this machine can build images: whose programs it can run.

Debian's arch-test tries one. Another architecture's runs where the kernel hands it to an emulator
(binfmt_misc), as Debian's package qemu-user-static has it.
"""

from cluster import node_packages
from cluster.commands import run
from cluster.images import native_architecture
from cluster.images_operator import ARCH_TEST

ARCHITECTURES = ("amd64", "arm64")


def why_not(architecture: str) -> str:
    """Why no program of this architecture runs here; empty: one does."""
    if architecture == native_architecture():
        return ""
    try:
        node_packages.ensure_packages((ARCH_TEST,))
    except node_packages.PackagesMissing as error:
        return f"it cannot be tried whether its programs run here: {error}"
    if run([node_packages.program(ARCH_TEST), architecture], check=False).returncode:
        with_what = "Debian's qemu-user-static with binfmt-support lets them run"
        return f"its programs do not run here; {with_what}"
    return ""


def buildable(asked: str = "") -> tuple[tuple[str, ...], dict[str, str]]:
    """Architectures that images are built for, and of the others why not.

    Args:
        asked: names with commas between them; empty = all.
    """
    wanted = asked.split(",") if asked else ARCHITECTURES
    found = {
        each: why_not(each) if each in wanted else f"not among ARCHITECTURES={asked}"
        for each in ARCHITECTURES
    }
    can = tuple(each for each, why in found.items() if not why)
    return can, {each: why for each, why in found.items() if why}
