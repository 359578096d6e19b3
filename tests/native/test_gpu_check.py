"""`make gpu-check` on the pretended driver: the whole table, and that it can fail."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.native.build import NativeBuild
from tests.native.fake_gpu import FakeGPU

from gpu_check.boxes import Box, BoxMaker
from gpu_check.building import Programs, require_compiler
from gpu_check.costs import OTHERS, Turns, judge
from gpu_check.findings import CannotRunError, ProbeError, SkippedError, Verdict
from gpu_check.foreign import OPENED, UNSLOTTED_AT, UNSLOTTED_UNTIL_AT
from gpu_check.frameworks import FRAMEWORKS, FrameworkCheck
from gpu_check.frameworks import judge as judge_framework
from gpu_check.libraries import find_driver
from gpu_check.nvml import Watch
from gpu_check.plan import DEFAULT_CAP_MIB
from gpu_check.probes import RESOLUTIONS, ProbeStarter
from gpu_check.report import all_held
from gpu_check.rows import ROWS, RowCheck
from gpu_check.selftests import SelfTested
from gpu_check.selftests import judge as judge_self_test
from gpu_check.state_folders import HEADER_BYTES, LEDGER_BYTES, StateFolderCheck
from gpu_scheduler.agent import ledger
from gpu_scheduler.agent.selftest import LIMIT_MIB

TOOLS = Path(__file__).parents[2] / "tools"
TOGETHER = {"sum", "sum by NVML", "sigkill", "live limit"}
FOREIGN = {
    ("reopened driver", "closed, opened again"): 1000,
    **{("opened driver", way): 1000 for way in OPENED},
    ("no library", "told by the agent"): 1000 - 300 - 256,
    ("contexts", "1 process"): 900,
    ("contexts", "4 processes"): 900,
    ("no ledger", "no state folder"): 0,
    ("no ledger", "read-only"): 0,
    ("no ledger", "full disk"): 0,
    ("self-test", "of the agent"): LIMIT_MIB,
}
COSTS = {
    ("cost of alloc", "alloc and free"),
    ("cost of async", "alloc and free"),
    ("cost of vmm", "alloc and free"),
    ("cost of a refusal", f"beside {OTHERS}"),
    ("cost of a start", "no CUDA"),
    ("cost of a start", "with a context"),
    ("cost of a launch", "empty kernel"),
}


def gpu_check(*options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpu_check", *map(str, options)],
        env={**os.environ, "PYTHONPATH": str(TOOLS), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def run(
    native: NativeBuild, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """One run of the whole check, and its report."""
    path = tmp_path_factory.mktemp("gpu-check") / "report.json"
    done = gpu_check("--fake", "--json", path)
    assert path.exists(), done.stdout + done.stderr
    return done, json.loads(path.read_text())


@pytest.fixture(scope="module")
def findings(
    run: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> Mapping[tuple[str, str], dict[str, Any]]:
    return {(found["check"], found["how"]): found for found in run[1]["findings"]}


def test_everything_that_ran_held(
    run: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, report = run
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["all_held"] and report["counts"]["failed"] == 0
    expected = {(row.name, how) for row in ROWS for how in RESOLUTIONS}
    rest = {
        (found["check"], found["how"]) for found in report["findings"] if found["verdict"] == "held"
    } - expected
    assert {check for check, _ in rest - set(FOREIGN)} == TOGETHER | {"release"}
    assert len(expected) == 37 * 4


@pytest.mark.parametrize("how", RESOLUTIONS)
@pytest.mark.parametrize("row", [row.name for row in ROWS])
def test_row(findings: Mapping[tuple[str, str], dict[str, Any]], row: str, how: str) -> None:
    found = findings[row, how]
    figures = found["figures"]
    assert found["verdict"] == "held", found["note"]
    assert abs(found["got_mib"] - DEFAULT_CAP_MIB) < figures["granule_mib"]
    assert figures["answer"] == 2
    totals = {figures[name] for name in figures if name.endswith("total_mib")}
    assert totals | {figures["nvml_total_v2_mib"]} == {DEFAULT_CAP_MIB}
    if not row.startswith("context"):
        assert figures["outside_by"] == "process"
        assert abs(figures["outside_mib"] - DEFAULT_CAP_MIB) < figures["granule_mib"]


def test_processes_together_stay_under_the_cap_as_nvml_sees_it(
    findings: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    inside = findings["sum", "4 processes"]
    outside = findings["sum by NVML", "4 processes"]
    assert inside["got_mib"] == inside["cap_mib"] == 1000 + 4 * 300
    assert outside["got_mib"] == outside["cap_mib"]
    assert outside["figures"]["outside_by"] == "process"


@pytest.mark.parametrize(("check", "how"), FOREIGN)
def test_what_once_got_past_the_cap(
    findings: Mapping[tuple[str, str], dict[str, Any]], check: str, how: str
) -> None:
    found = findings[check, how]
    assert found["verdict"] == "held", found["note"]
    assert found["got_mib"] == FOREIGN[check, how]


def test_the_agents_part_is_written_where_the_agent_writes() -> None:
    assert (UNSLOTTED_AT, UNSLOTTED_UNTIL_AT) == (ledger.UNSLOTTED_AT, ledger.UNSLOTTED_UNTIL_AT)
    assert (HEADER_BYTES, LEDGER_BYTES) == (ledger.HEADER_BYTES, ledger.FILE_BYTES)


def test_sudden_death_loses_nothing(
    findings: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    found = findings["sigkill", "4 processes"]
    assert found["got_mib"] == DEFAULT_CAP_MIB
    assert found["figures"]["killed"] == 40


def test_what_a_child_keeps_of_one_that_was_killed_is_charged(
    findings: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    found = findings["sigkill", "its child lives"]
    assert found["got_mib"] == DEFAULT_CAP_MIB
    assert found["figures"] == {"held_mib": 500, "kept_mib": 800, "beside_mib": 500}


def test_limit_follows_the_file(findings: Mapping[tuple[str, str], dict[str, Any]]) -> None:
    found = findings["live limit", "1 process"]
    assert found["figures"]["before_mib"] == DEFAULT_CAP_MIB
    assert found["got_mib"] == found["cap_mib"] == DEFAULT_CAP_MIB + 256


def test_reserve_is_compared_with_what_nvml_shows(
    findings: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    figures = findings["context reserve", "NVML"]["figures"]
    assert (figures["context_mib"], figures["with_a_kernel_mib"]) == (300, 302)
    assert figures["reserve_mib"] == 512


def test_costs_are_measured_and_not_judged_on_the_pretended_driver(
    findings: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    for cost in COSTS:
        found = findings[cost]
        assert found["verdict"] == "measured", found["note"]
        assert all(
            figure > 0
            for name, figure in found["figures"].items()
            if name.startswith(("with_", "without_", "alone_", "beside_"))
        )


def test_report_says_where_it_was_taken_and_what_was_skipped(
    run: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    report = run[1]
    machine = report["machine"]
    assert report["schema_version"] == 1
    assert machine["gpu"] == "NVIDIA A100-PCIE-40GB"
    assert machine["uuid"] == "GPU-00000000-0000-4000-8000-000000000000"
    assert (machine["driver"], machine["cuda"]) == ("570.86.15", "12.8")
    assert machine["pretended"] and machine["kernel"] and machine["architecture"]
    skipped = {key for key in report["skipped"] if report["skipped"][key]}
    assert skipped == {f"{f.module} ({way})" for f in FRAMEWORKS for way in f.ways}


def test_table_has_a_line_for_every_finding(
    run: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, report = run
    for found in report["findings"]:
        verdict = "FAILED" if found["verdict"] == "failed" else found["verdict"]
        assert any(
            line.startswith(found["check"]) and found["how"] in line and verdict in line
            for line in done.stdout.splitlines()
        ), found


def test_without_the_library_the_check_fails_and_says_why(
    native: NativeBuild, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    done = gpu_check("--fake", "--without-library", "--json", path)
    report = json.loads(path.read_text())
    assert done.returncode == 1, done.stdout + done.stderr
    assert not report["all_held"]
    failed = {f["check"] for f in report["findings"] if f["verdict"] == "failed"}
    assert failed == {row.name for row in ROWS} | TOGETHER | {"release", "cost of a refusal"} | {
        check for check, _ in FOREIGN
    }
    ways = {(f["check"], f["how"]) for f in report["findings"] if f["verdict"] == "failed"}
    assert ways >= FOREIGN.keys()
    (alloc,) = [f for f in report["findings"] if (f["check"], f["how"]) == ("alloc", "ctypes")]
    assert alloc["got_mib"] == DEFAULT_CAP_MIB + 256  # stopped two pieces beyond the cap
    assert "256 MiB more than the cap" in alloc["note"]
    assert "stopped by this check" in alloc["note"]


def fake_programs(folder: Path, script: str) -> Programs:
    probe = folder / "probe"
    probe.write_text(f"#!/bin/sh\n{script}\n")
    probe.chmod(0o755)
    return Programs(folder / "no-library", probe, probe)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("echo no driver today >&2; exit 2", "exit code 2): no driver today"),
        ("read line; echo 100", "start: CUresult 100"),
        ("read line; echo nonsense", "unexpected answer 'nonsense'"),
    ],
)
def test_a_row_that_crashes_is_a_failed_row(tmp_path: Path, script: str, words: str) -> None:
    start = ProbeStarter(fake_programs(tmp_path, script))
    check = RowCheck(start, BoxMaker(tmp_path, None, {}), None, 1000)
    found = check.finding(ROWS[0], "linked")
    assert found.verdict is Verdict.FAILED
    assert words in found.note


def test_a_process_that_says_nothing_is_killed(tmp_path: Path) -> None:
    start = ProbeStarter(fake_programs(tmp_path, "read a; echo 0; read b; exec sleep 60"))
    box = BoxMaker(tmp_path, None, {})(None)
    with start(box, context=False) as probe:
        with pytest.raises(ProbeError, match=r"no answer within 0\.2 s; killed"):
            probe.ask("see", seconds=0.2)
        assert probe.process.returncode == -9


def test_a_row_that_the_driver_cannot_do_is_skipped_not_held(tmp_path: Path) -> None:
    script = "read a; echo 0; read b; echo 0; read c; echo 0"
    check = RowCheck(
        ProbeStarter(fake_programs(tmp_path, script)), BoxMaker(tmp_path, None, {}), None, 1000
    )
    found = check.finding(ROWS[0], "linked")
    assert (found.verdict, found.note) == (Verdict.SKIPPED, "this driver has no cuMemAlloc_v2")


def test_a_refusal_without_the_library_too_is_skipped_not_held(tmp_path: Path) -> None:
    script = (
        "echo 0; echo 0; echo 1; echo 0 801; echo 0 801; echo 0 801; echo 0 801; echo 1 2 3 4 5 6"
    )
    bare = "echo 0; echo 0; echo 0 801; echo 0 801; echo 0 801; echo 0 801"
    both = (
        f'if [ -e "$0.second" ]; then {bare}; else touch "$0.second"; {script}; fi; cat >/dev/null'
    )
    check = RowCheck(
        ProbeStarter(fake_programs(tmp_path, both)), BoxMaker(tmp_path, None, {}), None, 1000
    )
    found = check.finding(ROWS[0], "linked")
    assert found.verdict is Verdict.SKIPPED
    assert found.note == "CUresult 801 after 0 MiB without the library, too"


def test_no_driver_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"no NVIDIA driver: libcuda\.so\.1 is neither known"):
        find_driver([str(tmp_path)], lambda name: None)


def test_a_driver_that_the_loader_does_not_know_is_found(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").touch()
    found = find_driver([str(tmp_path)], lambda name: None)
    assert found.environment["LD_LIBRARY_PATH"].split(":")[0] == str(tmp_path)
    assert found.nvml is None


def test_no_compiler_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotRunError, match="no gcc and no make in PATH"):
        require_compiler()


@pytest.mark.parametrize("path", ["/home/me/my projects/gpus", "/data:1/gpus"])
def test_a_path_that_make_cannot_work_with_is_said_in_a_sentence(path: str) -> None:
    with pytest.raises(CannotRunError, match="has a blank or a colon in it.*move the checkout"):
        require_compiler(Path(path))


def test_no_compiler_is_exit_code_2() -> None:
    done = gpu_check("--fake", PATH="/nowhere")
    assert done.returncode == 2
    assert "no gcc" in done.stderr and "Traceback" not in done.stderr


def test_a_device_without_room_is_left_alone(native: NativeBuild) -> None:
    done = gpu_check("--fake", "--cap-mib", 30000)
    assert done.returncode == 2
    assert "NVIDIA A100-PCIE-40GB has 40448 MiB free, this check needs" in done.stderr


def test_a_report_that_cannot_be_written_is_said_before_the_work(native: NativeBuild) -> None:
    done = gpu_check("--fake", "--json", "/nowhere/report.json")
    assert done.returncode == 2
    assert "no folder to write to" in done.stderr and "alloc" not in done.stdout


@pytest.mark.parametrize(
    ("without", "with_library", "verdict"),
    [
        ([10.0, 10.1, 10.2], [10.5, 10.6, 10.7], Verdict.HELD),  # adds half of what is promised
        ([10.0, 10.1, 10.2], [12.0, 12.1, 12.2], Verdict.FAILED),
        ([10.0, 12.0, 15.0], [13.9, 14.0, 15.0], Verdict.MEASURED),  # less than the noise
    ],
)
def test_an_added_cost_is_judged_by_the_noise(
    without: list[float], with_library: list[float], verdict: Verdict
) -> None:
    assert judge(Turns(without, with_library), 1.0, judged=True)[0] is verdict


def self_tested(result: str, got_mib: int) -> SelfTested:
    return SelfTested(result, f"got {got_mib}", result == "failed", LIMIT_MIB, got_mib)


@pytest.mark.parametrize(
    ("ours", "idle", "verdict", "words"),
    [
        (("passed", 256), ("failed", 320), Verdict.HELD, ""),
        (("failed", 320), ("failed", 320), Verdict.FAILED, "the library: got 320"),
        (("passed", 256), ("passed", 256), Verdict.FAILED, "would not be closed"),
        (("untested", 0), ("failed", 320), Verdict.SKIPPED, "got 0"),
    ],
)
def test_the_agents_self_test_is_judged_with_the_library_and_with_an_idle_one(
    ours: tuple[str, int], idle: tuple[str, int], verdict: Verdict, words: str
) -> None:
    try:
        wrong = judge_self_test(self_tested(*ours), self_tested(*idle))
        found = Verdict.FAILED if wrong else Verdict.HELD
    except SkippedError as error:
        wrong, found = str(error), Verdict.SKIPPED
    assert found is verdict
    assert words in wrong


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("read a; echo 0; read b; echo 0; read c; echo 8 2; cat >/dev/null", "that nobody counts"),
        ("read a; echo 0; read b; echo 2; cat >/dev/null", "refused without a word on stderr"),
        ("read a; echo 0; read b; kill -BUS $$", "killed by SIGBUS"),
    ],
)
def test_a_state_folder_that_cannot_be_used_is_refused_with_words(
    tmp_path: Path, script: str, words: str
) -> None:
    start = ProbeStarter(fake_programs(tmp_path, script))
    check = StateFolderCheck(start, BoxMaker(tmp_path, None, {}), None, 128)
    found = {finding.how: finding for finding in check.findings()}["read-only"]
    assert found.verdict is Verdict.FAILED
    assert words in found.note


def test_where_no_mounts_can_be_made_the_line_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    start = ProbeStarter(fake_programs(tmp_path, "read a; echo 0"))
    check = StateFolderCheck(start, BoxMaker(tmp_path, None, {}), None, 128)
    found = {finding.how: finding for finding in check.findings()}["read-only"]
    assert found.verdict is Verdict.SKIPPED
    assert "unshare" in found.note


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, ""),
        ({"got_mib": 1200}, "got 200 MiB more than the cap"),
        ({"error": None}, "stopped by this check"),
        ({"error": "ValueError"}, "it ended with ValueError"),
        ({"total_mib": 80000}, "it saw a device of 80000 MiB"),
        ({"got_mib": 100}, "refused after 100 MiB of 900"),
    ],
)
def test_a_framework_is_judged_by_what_it_saw_and_got(
    tmp_path: Path, seen: dict[str, object], words: str
) -> None:
    well = {"free_mib": 900, "total_mib": 1000, "got_mib": 880, "error": "OutOfMemoryError"}
    found = judge_framework(FRAMEWORKS[0], "default", Box(tmp_path, 1000, {}), well | seen)
    assert found.verdict is (Verdict.FAILED if words else Verdict.HELD)
    assert words in found.note


CUPY = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")

class OutOfMemoryError(Exception):
    pass

class runtime:
    def memGetInfo():
        context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxSetCurrent(context)
        driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

class cuda:
    runtime = runtime
    def alloc(size):
        if driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size)):
            raise OutOfMemoryError
        return size
"""


@pytest.mark.parametrize("library", [True, False])
def test_a_framework_meets_the_cap(
    native: NativeBuild, gpu: FakeGPU, tmp_path: Path, library: bool
) -> None:
    """A stand-in with the few calls of CuPy that are made, on the pretended driver."""
    (tmp_path / "cupy.py").write_text(CUPY)
    environment = {**gpu.environment, "PYTHONPATH": str(tmp_path)}
    make_box = BoxMaker(tmp_path, native.folder / "libgpucap.so" if library else None, environment)
    check = FrameworkCheck(sys.executable, {"cupy": "1"}, make_box, 2000)
    found = next(iter(check.findings()))
    assert (found.check, found.how, found.cap_mib) == ("cupy", "default", 2000)
    if library:  # the context is charged the 300 MiB that it took
        assert (found.verdict, found.got_mib) == (Verdict.HELD, 1696)
    else:
        assert found.verdict is Verdict.FAILED
        assert "it saw a device of 40448 MiB" in found.note
        assert "stopped by this check" in found.note


class Figures:
    """A device whose NVML says what a test wants."""

    def __init__(self, used: list[float], processes: dict[int, float | None]) -> None:
        self.used, self.known = used, processes

    def used_mib(self) -> float:
        return self.used.pop(0)

    def processes(self) -> dict[int, float | None]:
        return self.known


def test_processes_are_watched_by_their_ids_where_nvml_tells() -> None:
    watch = Watch(Figures([5000], {7: 300.0, 8: 400.0, 9: 1000.0}))
    assert (watch.held_mib([7, 8]), watch.by) == (700, "process")


@pytest.mark.parametrize("known", [{}, {7: None}])
def test_processes_are_watched_by_the_device_where_nvml_does_not_tell(
    known: dict[int, float | None],
) -> None:
    watch = Watch(Figures([5000, 5700], known))
    assert (watch.held_mib([7]), watch.by) == (700, "device")


def test_nothing_held_is_not_success() -> None:
    assert not all_held([])
