from pathlib import Path

import pytest
from tests.perf import report


def run(variant: str, number: int, rate: float) -> dict[str, object]:
    kinds = {"pods": 2.0, "events": 0.1, "jobs_and_projects": 0.0}
    return {
        "variant": variant,
        "round": number,
        "pods_per_second": rate,
        "writes_per_pod": 2.1,
        "writes_per_pod_by_kind": kinds,
    }


def test_ratios_are_taken_within_a_round_and_their_median_is_told() -> None:
    # Over all rounds ours has the higher median rate; in two rounds of three it was the slower.
    rates = {"stock": (100, 300, 200), "bind": (90, 270, 220)}
    runs = [run(v, n, rate) for v, own in rates.items() for n, rate in enumerate(own)]
    ratio = report.summary(runs)["bind"]["ratio_to_stock"]
    assert ratio["median"] == pytest.approx(0.9)
    assert (ratio["min"], ratio["max"]) == (pytest.approx(0.9), pytest.approx(1.1))


def test_a_variant_is_not_compared_with_itself_nor_with_what_did_not_run() -> None:
    found = report.summary([run("stock", 0, 100), run("bind", 0, 110)])
    assert "ratio_to_stock" not in found["stock"]
    assert "ratio_to_null" not in found["bind"]


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write_page(page, "new")
    report.write_page(page, "newer")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnewer\n\n{report.END}\nafter\n"


def test_a_page_without_markers_is_not_touched(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing to replace\n")
    with pytest.raises(ValueError, match="measured: begin"):
        report.write_page(page, "new")
    assert page.read_text() == "nothing to replace\n"
