import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

from cluster.images import Image, pack, pack_layer

IMAGE = Image(
    tag="docker.io/example/program:1",
    files={"bin/program": b"\x7fELF", "etc/passwd": b"root:x:0:0::/:/bin/sh\n"},
    links={"bin/sh": "program"},
    entrypoint=("/bin/program",),
    environment={"PATH": "/bin"},
    user="1:1",
)


def members(data: bytes) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        found = {}
        for info in tar:
            content = tar.extractfile(info)
            found[info.name] = (info, content.read() if content else b"")
        return found


def test_equal_images_are_equal_bytes() -> None:
    reordered = replace(IMAGE, files=dict(reversed(list(IMAGE.files.items()))))
    assert pack(IMAGE) == pack(reordered)


def test_another_content_is_another_image() -> None:
    assert pack(IMAGE) != pack(replace(IMAGE, files={"bin/program": b"other"}))


def test_the_archive_names_its_layer_by_digest() -> None:
    outer = members(pack(IMAGE))
    config = json.loads(outer["config.json"][1])
    [entry] = json.loads(outer["manifest.json"][1])
    assert entry == {"Config": "config.json", "RepoTags": [IMAGE.tag], "Layers": ["layer.tar"]}
    digest = hashlib.sha256(outer["layer.tar"][1]).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_the_configuration_says_how_a_container_starts() -> None:
    config = json.loads(members(pack(IMAGE))["config.json"][1])["config"]
    assert config["Entrypoint"] == ["/bin/program"]
    assert config["Env"] == ["PATH=/bin"]
    assert config["User"] == "1:1"


def test_the_layer_holds_folders_before_files_and_links() -> None:
    layer = members(members(pack(IMAGE))["layer.tar"][1])
    assert list(layer) == ["bin", "etc", "bin/program", "etc/passwd", "bin/sh"]
    assert layer["bin/program"][1] == b"\x7fELF"
    assert layer["bin/program"][0].mode == 0o755
    assert layer["bin/sh"][0].linkname == "program"
    assert all(info.mtime == 0 and info.uid == 0 for info, _ in layer.values())


def test_a_layer_from_a_file_makes_the_same_image(tmp_path: Path) -> None:
    packed = members(pack(IMAGE))
    layer = tmp_path / "from-elsewhere.tar"
    layer.write_bytes(packed["layer.tar"][1])
    archive = tmp_path / "archive.tar"
    pack_layer(replace(IMAGE, files={}, links={}), layer, archive)
    found = members(archive.read_bytes())
    assert {name: data for name, (_, data) in found.items()} == {
        name: data for name, (_, data) in packed.items()
    }
    assert sorted(tmp_path.iterdir()) == [archive, layer]
