import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpu_scheduler.agent.selftest import (
    LIMIT_MIB,
    Layer,
    doubted,
    framework,
    interposer,
    judge,
    parse,
    verdict,
)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"got_mib": {"dlsym": 240, "cuGetProcAddress": 256}, "total_mib": 256}, "passed"),
        ({"got_mib": {"dlsym": 240, "cuGetProcAddress": 320}, "total_mib": 256}, "failed"),
        ({"got_mib": {"dlsym": 320}, "total_mib": 40448}, "failed"),
        ({"got_mib": {"dlsym": 0}, "total_mib": 40448}, "untested"),
        ({"got_mib": {}, "total_mib": 40448}, "untested"),
        ({"error": "cuInit: CUDA error 100"}, "untested"),
    ],
)
def test_an_answer_is_judged_by_what_it_got(answer: dict[str, Any], result: str) -> None:
    layer = judge("interposer", answer)
    assert layer.result == result
    assert layer.detail


PASSED = Layer("interposer", "passed", "cap 256 MiB")


def test_the_best_layer_that_passed_is_the_nodes() -> None:
    untested = Layer("kernel", "untested", "driver 570 is older")
    failed = Layer("kernel", "failed", "got 320 MiB")
    assert verdict(untested, PASSED).isolation == "interposer"
    assert verdict(Layer("kernel", "passed", ""), PASSED).isolation == "kernel"
    assert verdict(failed).isolation == "none"
    assert verdict(failed, PASSED).sentence == (
        "kernel failed: got 320 MiB; interposer passed: cap 256 MiB"
    )


def test_a_verdict_survives_its_file() -> None:
    found = verdict(PASSED)
    assert parse(found.to_json()) == found
    assert json.loads(found.to_json())["sentence"] == found.sentence


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"layers": [{"x": 1}]}', '{"layers": 5}'])
def test_what_is_no_verdict_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(text)


class FakeProbe:
    def __init__(self) -> None:
        self.env: Mapping[str, str] = {}

    def __call__(self, how: str, env: Mapping[str, str]) -> dict[str, Any]:
        self.env = env
        return {"got_mib": {how: LIMIT_MIB}}


def test_the_library_is_preloaded_where_it_is_not_installed(tmp_path: Path) -> None:
    library = tmp_path / "libgpucap.so"
    library.touch()
    runs = FakeProbe()
    assert interposer(runs, library=library, preload=tmp_path / "none").result == "passed"
    assert runs.env["LD_PRELOAD"] == str(library)
    assert runs.env["GPU_MEMORY_LIMIT_MIB"] == str(LIMIT_MIB)


def test_an_installed_library_is_tried_as_it_is(tmp_path: Path) -> None:
    preload = tmp_path / "ld.so.preload"
    preload.write_text("/opt/gpu-scheduler/lib/libgpucap.so\n")
    runs = FakeProbe()
    assert interposer(runs, library=tmp_path / "none", preload=preload).result == "passed"
    assert runs.env == {"GPU_MEMORY_LIMIT_MIB": str(LIMIT_MIB), "GPUCAP_CONTEXT_MIB": "0"}


def test_what_is_not_there_is_not_tested(tmp_path: Path) -> None:
    layer = interposer(FakeProbe(), library=tmp_path / "none", preload=tmp_path / "none")
    assert (layer.result, "does not exist" in layer.detail) == ("untested", True)
    assert framework(FakeProbe()).result == "untested"


FAILED = Layer("interposer", "failed", "got 320 MiB")
UNTESTED = Layer("interposer", "untested", "the device has no memory")


def test_a_layer_has_failed_where_no_better_one_passed() -> None:
    kernel = Layer("kernel", "passed", "cap 256 MiB")
    assert verdict(FAILED).failed == ("interposer",)
    assert verdict(FAILED, Layer("framework", "passed", "")).failed == ("interposer",)
    assert verdict(kernel, FAILED).failed == ()
    assert verdict(UNTESTED).failed == verdict(PASSED).failed == ()


@pytest.mark.parametrize(
    ("found", "settled", "failed", "said"),
    [
        (PASSED, False, ("interposer",), "that it passes now counts after 10 min (cap 256 MiB)"),
        (PASSED, True, (), "interposer passed: cap 256 MiB"),
        (UNTESTED, False, ("interposer",), "could not be tried again (the device has no memory)"),
        (UNTESTED, True, ("interposer",), "could not be tried again (the device has no memory)"),
        (FAILED, True, ("interposer",), "interposer failed: got 320 MiB"),
    ],
)
def test_a_failure_stands_until_a_pass_has_settled(
    found: Layer, settled: bool, failed: tuple[str, ...], said: str
) -> None:
    counts = doubted(verdict(found), ["interposer"], settled=settled)
    assert counts.failed == failed
    assert counts.sentence.endswith(said)
    assert doubted(verdict(found), [], settled=False) == verdict(found)


def test_limits_of_the_driver_are_tried_at_each_start_and_nothing_of_them_is_remembered() -> None:
    untested = Layer("kernel", "untested", "driver 570 is older")
    assert doubted(verdict(untested, PASSED), ["kernel"], settled=False) == verdict(
        untested, PASSED
    )
