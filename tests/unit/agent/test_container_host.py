"""CPU, memory, limits and stalls of a container, of cgroups of both versions."""

from pathlib import Path

import pytest
from tests.unit.agent.builders import CONTAINER

from gpu_scheduler.agent.container_host import UNKNOWN, ContainerHost
from gpu_scheduler.core.model.units import MIB

POD = "kubepods/burstable/pod0d2f1a5e-1111-4222-8333-444455556666"


def v2(root: Path, seconds: float, mib: int, inactive_mib: int = 0) -> None:
    folder = root / POD / CONTAINER
    folder.mkdir(parents=True, exist_ok=True)
    (root / "cgroup.controllers").write_text("cpu memory io\n")
    (folder / "cpu.stat").write_text(f"usage_usec {int(seconds * 1e6)}\nuser_usec 1\n")
    (folder / "memory.current").write_text(f"{mib * MIB}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive_mib * MIB}\n")
    for name, avg in (("io", 12.5), ("memory", 0.0)):
        lines = "some avg10={0} avg60=0.00 avg300=0.00 total=1\nfull avg10={0} avg60=0.0 total=1\n"
        (folder / f"{name}.pressure").write_text(lines.format(f"{avg:.2f}"))


def v1(root: Path, seconds: float, mib: int, inactive_mib: int = 0) -> None:
    for tree, files in {
        "cpu,cpuacct": {"cpuacct.usage": f"{int(seconds * 1e9)}\n"},
        "memory": {
            "memory.usage_in_bytes": f"{mib * MIB}\n",
            "memory.stat": f"cache 1\ntotal_inactive_file {inactive_mib * MIB}\n",
        },
    }.items():
        folder = root / tree / POD / CONTAINER
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)


@pytest.mark.parametrize(("write", "stalled"), [(v2, (0.125, 0.0)), (v1, (None, None))])
def test_both_versions_say_the_same(tmp_path: Path, write, stalled) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, 100.0, 900, 300)
    host = ContainerHost(tmp_path)
    first = host.read([CONTAINER], 50.0)[CONTAINER]
    assert first.cpu_milli is None  # nobody knows since when
    write(tmp_path, 125.0, 900, 300)
    found = host.read([CONTAINER], 60.0)[CONTAINER]
    assert (found.cpu_milli, found.memory_mib) == (2500.0, 600.0)
    assert (found.io_stalled, found.memory_stalled) == stalled


def test_a_container_that_is_not_there_is_looked_for_again_after_a_while(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("")
    host = ContainerHost(tmp_path)
    assert host.read([CONTAINER], 0.0) == {CONTAINER: UNKNOWN}
    v2(tmp_path, 1.0, 10)
    assert host.read([CONTAINER], 5.0) == {CONTAINER: UNKNOWN}
    assert host.read([CONTAINER], 31.0)[CONTAINER].memory_mib == 10


@pytest.mark.parametrize("name", ["cpu.stat", "memory.current", "memory.stat", "io.pressure"])
@pytest.mark.parametrize("text", [None, "", "max\n", "full avg10=x\n", "usage_usec\n", "\udcff"])
def test_an_odd_file_makes_one_figure_unknown(tmp_path: Path, name: str, text: str | None) -> None:
    v2(tmp_path, 1.0, 10)
    host = ContainerHost(tmp_path)
    host.read([CONTAINER], 0.0)
    v2(tmp_path, 2.0, 10)
    path = tmp_path / POD / CONTAINER / name
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text.encode(errors="surrogateescape"))
    found = host.read([CONTAINER], 10.0)[CONTAINER]
    figures = {
        "cpu.stat": found.cpu_milli,
        "memory.current": found.memory_mib,
        "io.pressure": found.io_stalled,
    }
    assert all((value is None) == (key == name) for key, value in figures.items())


def test_a_counter_that_went_back_is_unknown_once(tmp_path: Path) -> None:
    v2(tmp_path, 100.0, 10)
    host = ContainerHost(tmp_path)
    host.read([CONTAINER], 0.0)
    v2(tmp_path, 1.0, 10)
    assert host.read([CONTAINER], 10.0)[CONTAINER].cpu_milli is None
    v2(tmp_path, 2.0, 10)
    assert host.read([CONTAINER], 20.0)[CONTAINER].cpu_milli == 100.0


V2_LIMITS = ("cpu.max", "memory.max")
V1_LIMITS = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes")


def limits(root: Path, *texts: str) -> None:
    """Two texts for version 2, three for version 1."""
    for name, text in zip(V2_LIMITS if len(texts) == 2 else V1_LIMITS, texts, strict=True):
        tree = "" if len(texts) == 2 else name.partition(".")[0].replace("cpu", "cpu,cpuacct")
        (root / tree / POD / CONTAINER / name).write_text(text + "\n")


@pytest.mark.parametrize(
    ("write", "texts", "cpu_milli", "memory_mib"),
    [
        (v2, ("250000 100000", f"{3 * 1024 * MIB}"), 2500.0, 3072.0),
        (v2, ("max 100000", "max"), None, None),
        (v2, ("5 0", "0"), None, None),
        (v2, ("1 2 3", "\u0663"), None, None),
        (v2, ("9" * 30 + " 1", "9" * 30), None, None),
        (v1, ("50000", "100000", f"{512 * MIB}"), 500.0, 512.0),
        (v1, ("-1", "100000", "9223372036854771712"), None, None),
    ],
)
def test_limits_are_quota_over_period_and_what_is_none_is_unknown(
    tmp_path: Path,
    write,  # type: ignore[no-untyped-def]
    texts: tuple[str, ...],
    cpu_milli: float | None,
    memory_mib: float | None,
) -> None:
    write(tmp_path, 1.0, 10)
    limits(tmp_path, *texts)
    found = ContainerHost(tmp_path).read([CONTAINER], 0.0)[CONTAINER]
    assert (found.cpu_limit_milli, found.memory_limit_mib) == (cpu_milli, memory_mib)


def test_a_quota_of_version_1_is_found_where_cpu_and_cpuacct_are_two_hierarchies(
    tmp_path: Path,
) -> None:
    v1(tmp_path, 1.0, 10)
    (tmp_path / "cpu,cpuacct").rename(tmp_path / "cpuacct")
    folder = tmp_path / "cpu" / POD / CONTAINER
    folder.mkdir(parents=True)
    for name, text in (("quota", "150000"), ("period", "100000")):
        (folder / f"cpu.cfs_{name}_us").write_text(f"{text}\n")
    host = ContainerHost(tmp_path)
    assert host.read([CONTAINER], 0.0)[CONTAINER].cpu_limit_milli == 1500.0
    (tmp_path / "cpuacct" / POD / CONTAINER / "cpuacct.usage").write_text(f"{3 * 10**9}\n")
    assert host.read([CONTAINER], 10.0)[CONTAINER].cpu_milli == 200.0


def test_limits_are_read_again_after_half_a_minute(tmp_path: Path) -> None:
    v2(tmp_path, 1.0, 10)
    limits(tmp_path, "100000 100000", f"{MIB}")
    host = ContainerHost(tmp_path)
    host.read([CONTAINER], 0.0)
    limits(tmp_path, "200000 100000", f"{2 * MIB}")
    seen = [host.read([CONTAINER], now)[CONTAINER] for now in (29.0, 30.0)]
    assert [each.cpu_limit_milli for each in seen] == [1000.0, 2000.0]
    assert [each.memory_limit_mib for each in seen] == [1.0, 2.0]
