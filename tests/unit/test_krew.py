"""The manifest for krew has what krew wants: its schema is in its documentation, not here.

https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).parents[2] / "packaging" / "krew" / "gpu.yaml"
OS, ARCH = {"linux", "darwin", "windows"}, {"amd64", "arm64"}


@pytest.fixture
def manifest() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text()))


def test_it_is_a_plugin_called_gpu(manifest: dict[str, Any]) -> None:
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin"
    assert manifest["metadata"] == {"name": "gpu"}


def test_its_texts_are_as_krew_wants_them(manifest: dict[str, Any]) -> None:
    spec = manifest["spec"]
    assert set(spec) == {
        *("version", "homepage", "shortDescription", "description", "caveats", "platforms")
    }
    assert spec["version"].startswith("v")
    assert len(spec["shortDescription"]) <= 60 and "\n" not in spec["shortDescription"]
    assert not spec["shortDescription"].endswith(".")
    assert spec["homepage"].startswith("https://")


def test_each_platform_is_told_apart_and_has_an_archive(manifest: dict[str, Any]) -> None:
    platforms = manifest["spec"]["platforms"]
    chosen = [tuple(p["selector"]["matchLabels"].items()) for p in platforms]
    assert len(set(chosen)) == len(chosen) >= 1
    for platform in platforms:
        assert set(platform) == {"selector", "uri", "sha256", "bin", "files"}
        labels = platform["selector"]["matchLabels"]
        assert labels["os"] in OS and labels["arch"] in ARCH
        assert platform["uri"].startswith("https://")
        assert platform["uri"].endswith(f"{labels['os']}-{labels['arch']}.tar.gz")
        assert platform["bin"] == "kubectl-gpu"
        assert all(set(each) == {"from", "to"} for each in platform["files"])


def test_all_that_a_release_fills_in_is_named_in_the_comment() -> None:
    lines = FILE.read_text().splitlines(keepends=True)
    comment = "".join(line for line in lines if line.startswith("#"))
    body = "".join(line for line in lines if not line.startswith("#"))
    found = set(re.findall(r"SHA256_\w+|VERSION|RELEASES", body))
    assert {"VERSION", "RELEASES"} < found
    assert all(word in comment for word in ("VERSION", "RELEASES", "SHA256_*"))
    filled = re.sub(r"SHA256_\w+", "0" * 64, body.replace("VERSION", "1.2.3"))
    spec = yaml.safe_load(filled)["spec"]
    digests = [platform["sha256"] for platform in spec["platforms"]]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
