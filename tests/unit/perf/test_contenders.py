from pathlib import Path

import pytest
from tests.perf.contenders import MILLI, STOCK, Contender, parse
from tests.perf.settings import ROOT

NOTES = {"kwok.x-k8s.io/run-seconds": "3"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for part in ("operator/gpu_scheduler", "charts/gpu-scheduler"):
        (tmp_path / "some" / part).mkdir(parents=True)
    return tmp_path / "some"


def test_a_checkout_is_called_as_it_was_named_or_as_its_folder(checkout: Path) -> None:
    assert parse(f"old={checkout}") == Contender("old", checkout)
    assert parse(str(checkout)).name == "some"
    assert parse(str(ROOT)).name == "this"


def test_a_path_without_an_operator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="operator/gpu_scheduler"):
        parse(f"old={tmp_path}")


def test_nobody_may_be_called_as_the_stock_scheduler(checkout: Path) -> None:
    with pytest.raises(ValueError, match="stock"):
        parse(f"stock={checkout}")


def test_both_kinds_of_jobs_ask_for_the_same_part_of_a_gpu_and_run_as_long() -> None:
    _, ours = Contender("new", ROOT).job("a-1", milli=500, run_seconds=3)
    _, plain = STOCK.job("a-1", milli=500, run_seconds=3)
    assert ours["spec"]["gpu"] == 0.5
    container = plain["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {MILLI: "500"}
    assert ours["spec"]["template"]["metadata"]["annotations"] == NOTES
    assert plain["spec"]["template"]["metadata"]["annotations"] == NOTES
