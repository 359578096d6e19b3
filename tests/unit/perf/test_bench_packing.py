import json
from pathlib import Path

import pytest
from tests.perf import bench_packing
from tests.perf.bench_packing import (
    DECIDES,
    POLICIES,
    ROOT,
    SEEDS,
    SOURCES,
    VARIANTS,
    runs,
    sources,
)
from tests.perf.report import BEGIN, END


def names(found: set[Path], folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in found}


def test_results_depend_on_what_a_simulation_imports_at_any_depth(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from p.shared import A\n")
    (package / "run.py").write_text("from p import plan\nfrom json import dumps\n")
    (package / "plan.py").write_text("from p.run import B\n\ndef f():\n    from p.late import C\n")
    (package / "shared.py").write_text("A = 1\n")
    (package / "late.py").write_text("C = 1\n")
    (package / "web.py").write_text("from p.run import B\n")
    found = names(sources("p.run", tmp_path), package)
    assert found == {"__init__.py", "run.py", "plan.py", "shared.py", "late.py"}


def test_each_policy_is_among_the_sources_and_what_runs_in_a_cluster_is_not() -> None:
    found = names(sources(DECIDES, *SOURCES), ROOT)
    package = "operator/gpu_scheduler"
    assert found >= {
        f"{package}/core/packing/policy.py",
        f"{package}/core/packing/scarcity.py",
        f"{package}/core/model/devices.py",
        "tests/perf/replay/run.py",
    }
    elsewhere = ("runtime", "kube", "state", "api", "web")
    assert not any(name.startswith(f"{package}/{each}/") for name in found for each in elsewhere)


def test_a_table_with_gaps_is_printed_but_does_not_replace_the_one_in_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nold\n{END}\n")
    monkeypatch.setattr(bench_packing, "PAGE", page)
    monkeypatch.setattr(bench_packing, "KEPT", tmp_path)
    name = bench_packing.version()
    paths = [run.path(name) for run in runs(POLICIES, VARIANTS, list(SEEDS))]
    paths[0].parent.mkdir()
    figures = {"unallocatedPercent": 4.56, "lostDemandPercent": 0.0, "lostMultiGPUPercent": 0.0}
    for path in paths[1:]:
        path.write_text(json.dumps(figures))
    bench_packing.main(["--kept"])
    assert "| default | – | 4.56 |" in capsys.readouterr().out
    assert "old" in page.read_text()
    paths[0].write_text(json.dumps(figures))
    bench_packing.main(["--kept"])
    assert "| default | 4.56 | 4.56 |" in page.read_text()
