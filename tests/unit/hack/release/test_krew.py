"""krew's manifest names the archives that were built, and no others."""

import hashlib
import subprocess
from pathlib import Path

import yaml

from cluster.fetch_pins import this_platform
from release import krew
from release.contents import Component
from release.packing import File

ROOT = Path(__file__).parents[4]
TEMPLATE = (ROOT / krew.MANIFEST).read_text()


def test_platforms_without_an_archive_are_left_out() -> None:
    text = krew.manifest(TEMPLATE, "1.2.3", "example.com/r", {"linux-arm64": b"archive"})
    spec = yaml.safe_load(text)["spec"]
    (platform,) = spec["platforms"]
    assert spec["version"] == "v1.2.3"
    assert platform["uri"] == "https://example.com/r/v1.2.3/kubectl-gpu-linux-arm64.tar.gz"
    assert platform["uri"].endswith(krew.archive_name("linux-arm64"))
    assert platform["sha256"] == hashlib.sha256(b"archive").hexdigest()
    assert "SHA256_" not in text and "RELEASES" not in text and "VERSION" not in text


def test_texts_stay_readable() -> None:
    text = krew.manifest(TEMPLATE, "1.2.3", "", {})
    assert "description: |" in text
    template, made = yaml.safe_load(TEMPLATE), yaml.safe_load(text)
    assert made["spec"]["description"] == template["spec"]["description"]
    assert made["spec"]["homepage"] == "https://RELEASES"


def test_this_machine_is_a_platform_of_the_template() -> None:
    assert this_platform() in krew.platforms(TEMPLATE)


def test_the_newest_glibc_that_is_asked_for_counts() -> None:
    files = {
        "a": File(b"\x7fELF GLIBC_2.17 GLIBC_2.9"),
        "b": File(b"\x7fELF GLIBC_2.34"),
        "text": File(b"GLIBC_2.99"),
    }
    assert krew.glibc(files) == 34


def test_the_interpreter_and_libraries_are_listed() -> None:
    files = {"_internal/libssl.so.3": File(b"x"), "_internal/base_library.zip": File(b"y")}
    python, library = krew.bundled(files)
    assert (python.kind, python.name) == ("generic", "python")
    digest = hashlib.sha256(b"x").hexdigest()
    assert library == Component("file", "libssl.so.3", sha256=digest)


def test_completion_asks_the_program_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kubectl-gpu").write_text('#!/bin/sh\necho "$0" "$@"\n')
    (tmp_path / "kubectl-gpu").chmod(0o755)
    script = tmp_path / "kubectl_complete-gpu"
    script.write_bytes((ROOT / krew.PROGRAM / "kubectl_complete-gpu").read_bytes())
    script.chmod(0o755)
    (tmp_path / "elsewhere").symlink_to(script)
    done = subprocess.run(
        [tmp_path / "elsewhere", "sub", "a b"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}/kubectl-gpu __complete sub a b\n"
