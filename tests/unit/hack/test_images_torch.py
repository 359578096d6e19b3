from pathlib import Path

import pytest
from tests.e2e import images_torch


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Archives in the order in which they were built, in a cache of their own."""
    found: list[Path] = []

    def build(archive: Path) -> None:
        archive.touch()
        found.append(archive)

    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    monkeypatch.setattr(images_torch, "_build", build)
    return found


def test_it_is_built_once(built: list[Path]) -> None:
    assert images_torch.torch_archive() == images_torch.torch_archive()
    assert len(built) == 1


def test_another_recipe_is_another_image(
    built: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images_torch.torch_archive()
    monkeypatch.setattr(images_torch, "PACKAGES", (*images_torch.PACKAGES, "python3-numpy"))
    images_torch.torch_archive()
    script = tmp_path / "customize.sh"
    script.write_text("true")
    monkeypatch.setattr(images_torch, "CUSTOMIZE", script)
    images_torch.torch_archive()
    assert len(set(built)) == len(built) == 3
