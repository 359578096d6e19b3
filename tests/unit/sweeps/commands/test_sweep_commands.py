"""``kubectl gpu sweep`` as a user calls it.

The cluster is read in tests/api/test_sweep_cli.py.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.unit.api.sweep_cases import listed, sweep

from gpu_scheduler import picture
from gpu_scheduler.main import app
from gpu_scheduler.sweeps.commands import cluster, plot
from gpu_scheduler.sweeps.commands.column_table import ColumnTable
from gpu_scheduler.sweeps.commands.manifest import ManifestError, load, parse
from gpu_scheduler.sweeps.commands.record import NoResultsError, SweepOutcomes, record
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import Header, encode
from gpu_scheduler.sweeps.core.trials import parameters_of

GRID: dict[str, Any] = {
    "lr": {"values": [0.1, 0.01, 0.001]},
    "opt": {"values": ["adam", "sgd"]},
    "batch": {"int": [32, 64, 32]},
}


def body(spec: dict[str, Any], name: str = "search") -> dict[str, Any]:
    return {"kind": "GPUJob", "metadata": {"name": name, "namespace": "team-a"}, "spec": spec}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def call(spec: dict[str, Any] | str, *options: str) -> Result:
        path = tmp_path / "sweep.yaml"
        path.write_text(spec if isinstance(spec, str) else yaml.safe_dump(body(spec)))
        return CliRunner().invoke(app, ["sweep", "preview", "-f", str(path), *options])

    return call


def test_a_preview_shows_the_values_that_the_operator_will_give(run):
    spec = sweep("grid", None, parameters=GRID)
    shown = json.loads(run(spec, "-o", "json").output)
    search = parse(body(spec), "test").sweep.search()
    assert shown == [
        {"trial": trial, "parameters": parameters_of(search, trial)} for trial in range(12)
    ]
    assert shown[1]["parameters"] == {"batch": 32, "lr": 0.1, "opt": "sgd"}


def test_a_preview_for_people(run):
    assert run(sweep("grid", None, parameters=GRID), "-n", "2").output == (
        "TRIAL   BATCH   LR    OPT\n"
        "0       32      0.1   adam\n"
        "1       32      0.1   sgd\n"
        "\n"
        "2 of 12 trials, 4 at once\n"
    )


def test_csv_has_all_digits_and_no_footer(run):
    lines = run(sweep("random", 3), "-o", "csv").output.splitlines()
    assert lines[0] == "trial,lr"
    assert len(lines) == 4
    assert len(lines[1].split(",")[1]) > 15


def test_a_preview_of_a_hundred_thousand_trials_shows_those_asked_for(run):
    result = run(sweep("halton", 100_000), "-n", "3")
    assert result.output.endswith("3 of 100,000 trials, 4 at once\n")
    assert result.output.count("\n") == 6


def test_numbers_are_read_as_kubectl_reads_them(run):
    text = yaml.safe_dump(body(sweep("grid", None, parameters={"lr": {"values": ["LR"]}})))
    shown = run(text.replace("LR", "1e-5"), "-o", "json")
    assert json.loads(shown.output)[0]["parameters"] == {"lr": 1e-5}
    assert json.loads(run(text.replace("LR", "'1e-5'"), "-o", "json").output) == [
        {"trial": 0, "parameters": {"lr": "1e-5"}}
    ]


# What ``kubectl patch --local -o json`` (1.32) makes of the same words.
WORDS = {
    "y": True,
    "N": False,
    "on": True,
    "Off": False,
    "yes": True,
    "nO": "nO",
    "1:30": "1:30",
    "2024-01-01": "2024-01-01",
    "190:20:30.15": "190:20:30.15",
    "017": 15,
    "0o17": 15,
    "-0b11": -3,
    "0x1f": 31,
    "08": 8,
    "1_000": 1000,
    ".5e3": 500,
    "1.0e5": 100000,
    "1E5": 100000,
    "1e-5": 1e-5,
    ".5": 0.5,
    "-1.": -1,
    "1e20": 1e20,
    "100000000000000000000": 1e20,
    "12345678901234567890": 12345678901234567000.0,
}


@pytest.mark.parametrize("word", WORDS)
def test_a_plain_word_is_what_kubectl_takes_it_for(run, word):
    text = yaml.safe_dump(body(sweep("grid", None, parameters={"lr": {"values": ["WORD"]}})))
    (shown,) = json.loads(run(text.replace("WORD", word), "-o", "json").output)
    assert shown["parameters"] == {"lr": WORDS[word]}
    assert isinstance(shown["parameters"]["lr"], bool) is isinstance(WORDS[word], bool)


def test_a_name_that_kubectl_takes_for_a_boolean_is_refused_until_it_stands_in_quotes(run):
    text = yaml.safe_dump(body(sweep("grid", None, parameters={"NAME": {"values": [1]}})))
    result = run(text.replace("NAME", "n"))
    assert result.exit_code == 2
    assert "parameter 'false'" in result.output and "put its name in quotes" in result.output
    (shown,) = json.loads(run(text.replace("NAME", '"n"'), "-o", "json").output)
    assert shown["parameters"] == {"n": 1}


def test_a_number_past_all_doubles_is_a_problem_and_no_traceback(run):
    text = yaml.safe_dump(body(sweep("grid", None, parameters={"lr": {"values": ["WORD"]}})))
    result = run(text.replace("WORD", "9" * 400))
    assert result.exit_code == 2
    assert "spec.sweep.parameters.lr.values[0]" in result.output


@pytest.mark.parametrize(
    "number", ["1e-400", "-1e-400", "1e400", "0.0000001e-400", ".nan", "-.inf"]
)
@pytest.mark.parametrize("kind", ["uniform: [0, {}]", "values: [1, {}]", "constant: {}"])
def test_a_number_that_the_cluster_would_silently_change_is_refused(run, kind, number):
    text = yaml.safe_dump(body(sweep(parameters={"lr": "HERE"})))
    result = run(text.replace("HERE", "{" + kind.format(number) + "}"))
    assert result.exit_code != 0 and "spec.sweep.parameters.lr" in result.output


def test_a_number_that_is_zero_stays_zero(run):
    text = yaml.safe_dump(body(sweep(completions=1, parameters={"lr": "HERE"})))
    result = run(text.replace("HERE", "{constant: 0.0e-400}"))
    assert result.exit_code == 0, result.output


def test_a_parameter_may_be_called_trial(run):
    shown = json.loads(run(listed({"trial": "x"}), "-o", "json").output)
    assert shown == [{"trial": 0, "parameters": {"trial": "x"}}]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (sweep("tpe"), "chooses the parameters of a trial when it starts"),
        (sweep("grid"), "spec.sweep.parameters[lr]: a grid needs values"),
        ({"image": "a", "gpu": 1}, "no GPUJob with spec.sweep"),
        ("a: [", "is no YAML"),
        ("- 1\n---\n", "no GPUJob with spec.sweep"),
        ("kind: GPUJob\nspec: 3", "no GPUJob with spec.sweep"),
        ("kind: GPUJob\nspec: {sweep: 3}", "spec.sweep"),
    ],
)
def test_what_cannot_be_previewed_is_refused_with_the_reason(run, spec, says):
    result = run(spec)
    assert result.exit_code == 2
    assert says in result.stderr


def test_another_output_is_refused(run):
    result = run(sweep(), "-o", "xml")
    assert result.exit_code == 2
    assert "'xml' is not one of 'table', 'csv', 'json'" in result.stderr


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(ManifestError, match="nowhere"):
        load(Path("/nowhere/sweep.yaml"))


OUTCOMES = [
    Outcome(0, TrialState.SUCCEEDED, 0.5, (0.8,)),
    Outcome(2, TrialState.SUCCEEDED, 0.25, (0.9,)),
    Outcome(3, TrialState.FAILED, message="exit code 1"),
    Outcome(5, TrialState.PRUNED),
]


def some_record(outcomes: list[Outcome] = OUTCOMES, **fields: Any) -> SweepOutcomes:
    objective = {"metric": "val_loss", "additionalMetrics": ["acc"], "target": 0.2}
    spec = sweep("grid", None, **({"parameters": GRID, "objective": objective} | fields))
    text = encode(Header(0, ("val_loss", "acc")), outcomes)
    return record(parse(body(spec), "team-a/search"), [text])


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[SweepOutcomes]]:
    """What the commands get from the cluster; replace the one element."""
    found = [some_record()]
    monkeypatch.setattr(cluster, "fetch", lambda client, namespace, name: found[0])
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, users: [],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],"
        " contexts: [{name: x, context: {cluster: c}}]}"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    yield found


def test_trials_as_csv_with_states_results_and_parameters(recorded):
    result = CliRunner().invoke(app, ["sweep", "trials", "search", "-o", "csv"])
    assert result.output == (
        "trial,state,val_loss,acc,batch,lr,opt,message\n"
        "0,Succeeded,0.5,0.8,32,0.1,adam,\n"
        "2,Succeeded,0.25,0.9,32,0.01,adam,\n"
        "3,Failed,,,32,0.01,sgd,exit code 1\n"
        "5,Pruned,,,32,0.001,sgd,\n"
    )


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("val_loss", [2, 0, 3, 5]),
        ("VAL_LOSS", [2, 0, 3, 5]),
        ("lr", [5, 2, 3, 0]),
        ("parameters.lr", [5, 2, 3, 0]),
        ("state", [3, 5, 0, 2]),
    ],
)
def test_trials_are_sorted_by_a_column_and_what_is_empty_comes_last(recorded, column, order):
    options = ["sweep", "trials", "search", "--sort-by", column, "-o", "json"]
    shown = json.loads(CliRunner().invoke(app, options).output)
    assert [row["trial"] for row in shown] == order


def test_sorting_by_no_column_names_those_that_there_are(recorded):
    result = CliRunner().invoke(app, ["sweep", "trials", "search", "--sort-by", "loss"])
    assert result.exit_code == 2
    assert "--sort-by loss: one of trial, state, val_loss, acc, batch, lr" in result.stderr


def test_numbers_come_before_texts_and_by_their_size():
    table = ColumnTable((("", "x"),), [["b"], [10], [None], [9.5], ["a"], [True]])
    assert [row[0] for row in table.sorted_by("x").rows] == [9.5, 10, "a", "b", True, None]


def test_an_export_has_all_trials_for_another_program(recorded, tmp_path):
    csv = CliRunner().invoke(app, ["sweep", "export", "search"])
    shown = CliRunner().invoke(app, ["sweep", "trials", "search", "-o", "csv"])
    assert (csv.exit_code, csv.output) == (0, shown.output)
    path = tmp_path / "all.json"
    options = ["sweep", "export", "search", "-o", "json", "--output-file", str(path)]
    result = CliRunner().invoke(app, options)
    assert (result.exit_code, result.output) == (0, f"{path}\n")
    assert [each["trial"] for each in json.loads(path.read_text())] == [0, 2, 3, 5]


def test_an_export_into_no_folder_is_refused(recorded):
    options = ["sweep", "export", "search", "--output-file", "/nowhere/all.csv"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2
    assert "there is no folder /nowhere" in result.stderr


def test_the_best_trial_as_json(recorded):
    result = CliRunner().invoke(app, ["sweep", "best", "search", "-o", "json"])
    assert json.loads(result.output) == {
        "trial": 2,
        "metrics": {"val_loss": 0.25},
        "parameters": {"batch": 32, "lr": 0.01, "opt": "adam"},
    }


def test_the_best_trial_for_people(recorded):
    result = CliRunner().invoke(app, ["sweep", "best", "search"])
    assert result.output.splitlines()[1].split() == ["2", "0.25", "32", "0.01", "adam"]


@pytest.mark.parametrize("command", ["best", "plot"])
def test_without_a_result_there_is_no_best(recorded, command, tmp_path):
    recorded[0] = some_record(OUTCOMES[2:])
    options = ["-o", str(tmp_path / "a.png")] if command == "plot" else []
    result = CliRunner().invoke(app, ["sweep", command, "search", *options])
    assert result.exit_code == 1
    assert "no trial of search has succeeded" in result.stderr
    assert result.stderr.count("\n") == 1


def test_values_of_an_adaptive_search_come_from_its_results():
    spec = sweep("tpe", parameters={"lr": {"uniform": [0, 1]}})
    text = encode(
        Header(0, ("val_loss",), ("lr",)),
        [Outcome(7, TrialState.SUCCEEDED, 0.5, parameters=(0.123,))],
    )
    found = record(parse(body(spec), "x"), [text])
    assert found.trials().render("csv").splitlines()[1] == "7,Succeeded,0.5,0.123,"


def test_a_sweep_without_an_objective_has_trials_but_no_best():
    text = encode(Header(0), [Outcome(0, TrialState.SUCCEEDED)])
    spec = sweep("grid", None, parameters=GRID, objective=None)
    found = record(parse(body(spec), "x"), [text])
    assert found.trials().render("csv").splitlines()[1] == "0,Succeeded,32,0.1,adam,"
    with pytest.raises(NoResultsError, match="objective"):
        found.best()


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_a_picture_is_written(recorded, tmp_path, ending):
    path = tmp_path / f"search{ending}"
    result = CliRunner().invoke(app, ["sweep", "plot", "search", "-o", str(path)])
    assert (result.exit_code, result.output) == (0, f"{path}\n")
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG" if ending == ".png" else b"<?xml")


def test_axes_of_a_picture_hold_each_value_where_it_belongs():
    parameters = {
        "a-log": {"logUniform": [1e-4, 1.0]},
        "b-int": {"int": [2, 6]},
        "c-text": {"values": ["sgd", "adam"]},
        "d-number": {"values": [128, 32]},
        "e-fixed": {"constant": 1},
    }
    spec = sweep("random", 20, parameters=parameters)
    outcomes = [Outcome(i, TrialState.SUCCEEDED, float(i)) for i in range(20)]
    found = record(parse(body(spec), "x"), [encode(Header(0), outcomes)])
    axes = plot.scales(found, outcomes, "val_loss")
    assert [axis.name for axis in axes] == ["a-log", "b-int", "c-text", "d-number", "val_loss"]
    assert all(0 <= place <= 1 for axis in axes for place in axis.places)
    assert axes[2].ticks == [(0.25, "adam"), (0.75, "sgd")]
    assert [text for _, text in axes[3].ticks] == ["32", "128"]
    assert axes[4].places == [i / 19 for i in range(20)]


@pytest.mark.parametrize(
    ("name", "says"), [("a.gif", "ends with .png"), ("missing/a.png", "no folder")]
)
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path, name, says):
    with pytest.raises(picture.PlotError, match=says):
        picture.check(tmp_path / name)
