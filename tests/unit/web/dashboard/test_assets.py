"""The front end: files of a table, the page for every address of it, and nothing beside."""

from pathlib import Path

import pytest
from tests.unit.web.dashboard.fakes import Scene

from gpu_scheduler.web.dashboard import assets
from gpu_scheduler.web.dashboard.assets import Assets


@pytest.fixture
def built(tmp_path: Path) -> Assets:
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<html>the page</html>" * 20)
    (folder / "assets" / "index-D3adB33f.js").write_text("console.log(1)" * 50)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "passwords").write_text("no kind of a front end's files")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return assets.read(str(folder))


@pytest.mark.parametrize("path", ["/", "/queue", "/jobs/team-a/GPUJob/train", "/index.html"])
async def test_every_address_of_a_page_is_the_page(built: Assets, path: str) -> None:
    async with Scene(assets=built).served() as client:
        answer = await client.get(path)
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "the page" in await answer.text()
        assert answer.headers["Cache-Control"] == "no-cache"
        again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")


async def test_files_named_by_their_content_are_kept_for_ever(built: Assets) -> None:
    async with Scene(assets=built).served() as client:
        answer = await client.get("/assets/index-D3adB33f.js")
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.content_type == "text/javascript"
        assert answer.headers["Content-Encoding"] == "gzip"
        assert (await answer.text()).startswith("console.log")
        assert "immutable" not in (await client.get("/favicon.svg")).headers["Cache-Control"]


@pytest.mark.parametrize(
    "path",
    [
        "/missing.js",
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/link.txt",
    ],
)
async def test_no_address_is_a_path(built: Assets, path: str) -> None:
    async with Scene(assets=built).served() as client:
        answer = await client.get(path)
        text = await answer.text()
        assert answer.status == 404 and "secret" not in text


async def test_what_is_no_file_of_a_front_end_is_not_read(built: Assets) -> None:
    async with Scene(assets=built).served() as client:
        assert "kind of" not in await (await client.get("/passwords")).text()


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
async def test_without_a_front_end_it_says_so(folder: str) -> None:
    async with Scene(assets=assets.read(folder)).served() as client:
        answer = await client.get("/queue")
        assert answer.status == 404 and "front end" in await answer.text()


def test_a_folder_that_is_no_front_end_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "MOST_BYTES", 10)
    (tmp_path / "large.js").write_text("x" * 11)
    with pytest.raises(ValueError, match="more than"):
        assets.read(str(tmp_path))
