"""How well the policies pack: the openb trace under the published protocol, all 17 variants.

``python -m tests.perf.bench_packing`` or ``make bench-packing``. Each run's result is kept in
build/packing under a name that changes with the sources of a simulation, so a second call only
does what is missing; docs/packing.md says how long the whole takes. Writes the table between the
markers of that page when every run of it is there.
"""

import argparse
import ast
import csv
import hashlib
import json
import lzma
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import mean

from tests.perf.figures import table
from tests.perf.machine import machine
from tests.perf.replay.command import ReplayRequest, replay
from tests.perf.report import write_page

from gpu_scheduler.core.packing.policy import Packing

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "operator", ROOT)
DECIDES = "tests.perf.replay.command"  # what it imports, at any depth, decides a result
TRACE = ROOT / "tests" / "fixtures" / "traces" / "openb"
KEPT, PAGE = ROOT / "build" / "packing", ROOT / "docs" / "packing.md"
SEEDS = range(42, 52)
PUBLISHED = {Packing.FGD: "fgd", Packing.BEST_FIT: "bestfit"}
POLICIES = (Packing.FRAGMENTATION, Packing.FGD, Packing.BEST_FIT)
VARIANTS = (
    *("default", "cpu050", "cpu100", "cpu200", "cpu250"),
    *("gpushare40", "gpushare60", "gpushare80", "gpushare100"),
    *("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"),
    *("multigpu20", "multigpu30", "multigpu40", "multigpu50"),
)
# Lower bounds by a linear program, from the design; not recomputed here.
BOUNDS = {
    "gpuspec33": 3.6,
    "default": 3.1,
    "cpu250": 3.1,
    "cpu200": 3.1,
    "gpushare40": 4.3,
    "multigpu50": 1.7,
    "gpushare100": 10.9,
}


@dataclass(frozen=True, slots=True)
class SimulationRun:
    """One simulation; ``load`` None = nobody leaves."""

    policy: Packing
    variant: str
    seed: int
    load: float | None = None

    def path(self, version: str) -> Path:
        """Where its result is kept."""
        load = "" if self.load is None else f"-load{self.load:g}"
        return KEPT / version / f"{self.policy}-{self.variant}-{self.seed}{load}.json"

    def figures(self, version: str) -> dict[str, float | None]:
        """Its result, from the disk if it is there."""
        path = self.path(version)
        if path.exists():
            found: dict[str, float | None] = json.loads(path.read_text())
            return found
        request = ReplayRequest(
            nodes=TRACE / "openb_node_list_gpu_node.csv.xz",
            pods=TRACE / f"openb_pod_list_{self.variant}.csv.xz",
            packings=[self.policy],
            seed=self.seed,
            releasing=self.load,
        )
        found = replay(request, sys.stderr)[self.policy].to_json()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
        return found


def version() -> str:
    """A name for the sources that decide a result, whatever else this program has imported."""
    digest = hashlib.sha256(platform.python_version().encode())
    for path in sorted(sources(DECIDES, *SOURCES)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def sources(name: str, *folders: Path) -> set[Path]:
    """The file of a module and of those in ``folders`` that it imports, at any depth."""
    found: set[Path] = set()
    waiting = [name]
    while waiting:
        parts = waiting.pop().split(".")
        for path in (folder.joinpath(*parts) for folder in folders):
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if path in found or not path.exists():
                continue
            found.add(path)
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    waiting += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return found


def published() -> dict[tuple[str, str], float]:
    """Unallocated percent at 100 % of the demand by variant and policy: the published values."""
    text = lzma.decompress((TRACE / "published_fgd_alloc.csv.xz").read_bytes()).decode()
    found: dict[tuple[str, str], list[float]] = {}
    for line in csv.DictReader(StringIO(text)):
        key = line["variant"], line["policy"]
        found.setdefault(key, []).append(100 - float(line["alloc_at_100"]))
    return {key: mean(values) for key, values in found.items()}


def runs(
    policies: Sequence[Packing], variants: Sequence[str], seeds: Sequence[int]
) -> list[SimulationRun]:
    """The runs of a table, and those with releasing."""
    filling = [SimulationRun(p, v, s) for p in policies for v in variants for s in seeds]
    going = [
        SimulationRun(policy, "default", seed, load)
        for load in (0.9, 1.0)
        for policy in policies
        if policy is not Packing.BEST_FIT and "default" in variants
        for seed in seeds
    ]
    return filling + going


def page(
    found: dict[SimulationRun, dict[str, float | None]], seeds: Sequence[int], where: str
) -> str:
    """The measured part of docs/packing.md; ``where`` it was measured."""
    variants = list(dict.fromkeys(run.variant for run in found))
    known = published()

    def measured(policy: Packing, variant: str, load: float | None, key: str) -> float | None:
        values = [
            found.get(SimulationRun(policy, variant, seed, load), {}).get(key) for seed in seeds
        ]
        numbers = [value for value in values if value is not None]
        return mean(numbers) if len(numbers) == len(seeds) else None

    def cells(variant: str) -> Iterator[str]:
        yield variant
        for policy in POLICIES:
            yield _number(measured(policy, variant, None, "unallocatedPercent"))
            if policy in PUBLISHED:
                yield _number(known.get((variant, PUBLISHED[policy])))
        yield _number(BOUNDS.get(variant), 1)
        ours = measured(Packing.FRAGMENTATION, variant, None, "unallocatedPercent")
        reference = known.get((variant, "fgd"))
        yield "–" if ours is None or reference is None else f"{ours - reference:+.2f}"

    head = ["variant", "fragmentation", "FGD", "FGD published", "best fit", "best fit published"]
    head += ["bound", "ours − FGD published"]
    parts = [where, table(head, [list(cells(variant)) for variant in variants])]
    churn = [
        [
            f"{load:g}",
            policy,
            _number(measured(policy, "default", load, "lostDemandPercent"), 3),
            _number(measured(policy, "default", load, "lostMultiGPUPercent"), 2),
        ]
        for load in (0.9, 1.0)
        for policy in (Packing.FRAGMENTATION, Packing.FGD)
        if measured(policy, "default", load, "lostDemandPercent") is not None
    ]
    if churn:
        head = ["load", "policy", "GPU demand lost, %", "of pods with several GPUs, %"]
        parts += ["With releasing, default variant:", table(head, churn)]
    return "\n\n".join(parts)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _where(seeds: Sequence[int]) -> str:
    m = machine()
    return (
        "Unallocated GPU, % of the cluster, when the demand that has arrived is 100 % of it; mean"
        f" of seeds {min(seeds)} to {max(seeds)}. Commit {m['commit']}"
        f"{' with changes' if m['changed'] else ''}, Python {m['python']}, one core of {m['cpu']}."
        " `make bench-packing`"
    )


def _tell(text: str) -> None:
    """One line that is written over on a terminal, one line each elsewhere."""
    start, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
    print(start + text, end=end, file=sys.stderr, flush=True)  # noqa: T201


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the runs that are missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_packing", description=__doc__)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument(
        "--kept", action="store_true", help="only what is kept already; the table may have gaps"
    )
    options = parser.parse_args(arguments)
    name, where = version(), _where(options.seeds)  # now: sources may change meanwhile
    wanted = runs([Packing(p) for p in options.policies], options.variants, options.seeds)
    whole = wanted == runs(POLICIES, VARIANTS, list(SEEDS))
    if options.kept:
        there = [run for run in wanted if run.path(name).exists()]
        whole, wanted = whole and there == wanted, there
    found = {}
    for number, run in enumerate(wanted, 1):
        load = "" if run.load is None else f", load {run.load:g}"
        _tell(f"{number} of {len(wanted)}: {run.policy} on {run.variant}, seed {run.seed}{load}")
        found[run] = run.figures(name)
    text = page(found, options.seeds, where)
    print(text)  # noqa: T201
    if whole:
        write_page(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
