"""The examples do what they are there for: their program trains, and searching beats guessing.

Trials run one after the other in this process, with the arguments that their pods would get.
"""

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpu_scheduler.api.hparam_refs import replaced
from gpu_scheduler.api.search import Algorithm, Parameters, Search, text_of
from gpu_scheduler.sweeps.commands.manifest import SweepManifest, load
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.results import read_message
from gpu_scheduler.sweeps.core.trials import parameters_of
from gpu_scheduler.sweeps.search.tpe import TpeStudy

FOLDER = Path(__file__).parents[4] / "examples" / "sweeps"
TRIALS = 12


@pytest.fixture(scope="module")
def program() -> Any:
    """``train.py`` as a module; beside it lies what it imports."""
    spec = importlib.util.spec_from_file_location("train", FOLDER / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.setattr(sys, "dont_write_bytecode", True)
        spec.loader.exec_module(module)
        yield module
    sys.modules.pop("report", None)


@pytest.fixture(scope="module")
def train(program: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The loss of a trial, by way of its arguments and its result file."""
    file = tmp_path_factory.mktemp("trial") / "result"

    @cache
    def run(arguments: tuple[str, ...]) -> float:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["train.py", *arguments])
            patch.setenv("GPUJOB_RESULT_FILE", str(file))
            patch.delenv("GPUJOB_REPORT_URL", raising=False)
            program.main()
        objective = load(FOLDER / "grid.yaml").sweep.core_objective()
        reading = read_message(file.read_bytes(), objective)
        assert reading.state is TrialState.SUCCEEDED
        assert reading.value is not None
        assert len(reading.also) == 1
        return reading.value

    def of(sweep: SweepManifest, parameters: Parameters) -> float:
        texts = {name: text_of(value) for name, value in parameters.items()}
        return run(tuple(replaced(a, texts.__getitem__) for a in sweep.spec.args or ()))

    return of


@pytest.fixture(scope="module")
def worst_quarter(train: Any) -> float:
    """The best loss in the worst quarter of the grid."""
    grid = load(FOLDER / "grid.yaml")
    sets = [parameters_of(grid.sweep.search(), i) for i in range(grid.spec.total_pods)]
    losses = sorted(train(grid, each) for each in sets)
    assert len(losses) == 12
    return losses[-len(losses) // 4]


@pytest.mark.parametrize("algorithm", [Algorithm.RANDOM, Algorithm.HALTON])
def test_a_search_finds_a_better_trial_than_the_worst_quarter_of_the_grid(
    train, worst_quarter, algorithm
):
    sweep = load(FOLDER / "random.yaml")
    spec = sweep.sweep.search()
    search = Search(algorithm, spec.space, spec.seed)
    first = [parameters_of(search, trial) for trial in range(TRIALS)]
    assert first == [parameters_of(search, trial) for trial in range(TRIALS)]
    assert min(train(sweep, each) for each in first) < worst_quarter / 2


def test_tpe_finds_a_better_trial_than_the_worst_quarter_of_the_grid(train, worst_quarter):
    sweep = load(FOLDER / "tpe.yaml")
    objective = sweep.sweep.core_objective()
    assert objective is not None
    study = TpeStudy(sweep.sweep.search().space, objective, 7)
    losses = []
    for trial in range(TRIALS):
        losses.append(train(sweep, study.ask(trial)))
        study.tell(Outcome(trial, TrialState.SUCCEEDED, losses[-1]))
    assert min(losses) < worst_quarter / 2


def test_every_example_is_a_right_sweep():
    names = {path.name: load(path).sweep.algorithm for path in FOLDER.glob("*.yaml")}
    assert names == {"grid.yaml": "grid", "random.yaml": "random", "tpe.yaml": "tpe"}


def test_the_helper_goes_on_when_nobody_answers(program, monkeypatch, capsys):
    monkeypatch.setenv("GPUJOB_REPORT_URL", "http://127.0.0.1:9/")  # a port that nobody serves
    assert program.report(1, val_loss=0.5) is False
    assert "report: " in capsys.readouterr().err


def test_the_helper_says_what_it_was_told(program, monkeypatch, tmp_path):
    sent = []
    (tmp_path / "token").write_text("a.b.c")
    monkeypatch.setenv("GPUJOB_TOKEN_FILE", str(tmp_path / "token"))

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self):
            return b'{"stop": true}'

    def urlopen(request, timeout):
        said = json.loads(request.data)
        sent.append((request.full_url, request.get_method(), said, request.headers))
        return Answer()

    monkeypatch.setenv("GPUJOB_REPORT_URL", "http://operator/report")
    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    assert program.report(3, val_loss=0.5) is True
    body = {"step": 3, "metrics": {"val_loss": 0.5}}
    shown = {"Authorization": "Bearer a.b.c"}
    assert sent == [("http://operator/report", "POST", body, shown)]


def test_the_helper_prints_the_result_where_there_is_no_sweep(program, monkeypatch, capsys):
    monkeypatch.delenv("GPUJOB_RESULT_FILE", raising=False)
    program.result(val_loss=0.5)
    assert capsys.readouterr().out == '{"val_loss": 0.5}\n'
