from pathlib import Path

from tests.perf.bench_packing import DECIDES, SOURCES, sources


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
    found = names(sources(DECIDES, SOURCES), SOURCES / "gpu_scheduler")
    assert found >= {"core/packing/published.py", "core/packing/scarcity.py", "core/devices.py"}
    assert not {name.split("/")[0] for name in found} & {"runtime", "kube", "state", "api", "web"}
