import re
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from cluster.fetch_pins import PINS_FILE, Digest, read, this_platform, write
from cluster.programs import KUBERNETES, KUBERNETES_VERSION, PROGRAMS, key, version

PINS = read()
BY_NAME = {program.name: program for program in PROGRAMS}
RELEASED = {
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubectl",
    "etcd",
    "kwok",
    "helm",
}


def digests() -> list[Digest]:
    return [
        *(digest for each in PINS.published.values() for digest in each.files.values()),
        *(digest for each in PINS.published.values() for digest in each.members.values()),
        *(
            digest
            for each in PINS.published.values()
            for files in each.others.values()
            for digest in files.values()
        ),
        *(built.digest for entries in PINS.built.values() for built in entries),
    ]


def test_released_and_built_programs_are_of_the_same_version() -> None:
    """Fails when go.mod, or pins.json, is changed alone: `python -m cluster pin`."""
    assert set(PINS.published) == RELEASED
    for name, published in PINS.published.items():
        assert published.version == version(BY_NAME[name]), name


def test_the_version_of_kubernetes_is_that_of_its_module() -> None:
    assert version(BY_NAME["kubectl"]) == KUBERNETES_VERSION


def test_pins_of_built_programs_are_of_the_modules_that_are_here() -> None:
    """Fails when a module was changed: `python -m cluster pin --built` drops the old pins."""
    for name, entries in PINS.built.items():
        assert {built.key for built in entries} == {key(BY_NAME[name])}, name


def test_no_program_lacks_a_pin_on_linux_amd64() -> None:
    """So that with a full mirror nothing has to be built there."""
    for program in PROGRAMS:
        assert PINS.built_of(program.name, key(program), "linux-amd64", "2.36"), program.name


def test_digests_are_digests() -> None:
    assert digests()
    for digest in digests():
        assert re.fullmatch("[0-9a-f]{64}", digest.sha256)
        assert digest.size is None or 1_000_000 < digest.size < 200_000_000
    assert len({digest.sha256 for digest in digests()}) == len(digests())


def test_published_programs_are_fetched_by_https_alone() -> None:
    for published in PINS.published.values():
        for pattern in (published.url, published.checksums):
            url = urlsplit(published.fill(pattern, "linux-amd64"))
            assert not pattern or (url.scheme == "https" and url.hostname)
            assert "{" not in url.geturl()


def test_a_static_program_names_no_libc_and_another_one_does() -> None:
    for name, entries in PINS.built.items():
        for built in entries:
            assert bool(built.libc) == BY_NAME[name].cgo, name


def test_pins_are_written_as_they_were_read(tmp_path: Path) -> None:
    write(PINS, tmp_path / "pins.json")
    assert (tmp_path / "pins.json").read_bytes() == PINS_FILE.read_bytes()
    assert read(tmp_path / "pins.json") == PINS


def test_files_of_other_versions_are_of_those_that_the_chart_is_tried_on() -> None:
    assert PINS.published["kubelet"].others.keys() <= KUBERNETES.keys()
    found = PINS.published_of("kubelet", "1.36.3")
    assert found is not None and found.version == "1.36.3" and "linux-amd64" in found.files
    assert PINS.published_of("kubelet", "1.0.0") == replace(found, version="1.0.0", files={})


def test_this_machine_has_a_name() -> None:
    assert re.fullmatch(r"[a-z0-9]+-[a-z0-9_]+", this_platform())
