"""Sweeps that are right and sweeps that are wrong, for the Python rules and for the CRD's alike.

``tests/api/test_sweep_crd.py`` applies the same ones to a real API server. ``WRONG_FOR_PYTHON`` are
those that CEL cannot see; they are accepted there and refused by the operator.
"""

from typing import Any

from tests.unit.api.cases import Spec, Wrong, job, long_job

from gpu_scheduler.api import sweep_rules as says

LOSS = {"metric": "val_loss"}
LR = {"logUniform": [1e-5, 1e-1]}
BATCH = {"values": [32, 64, 128]}


def sweep(algorithm: str = "random", completions: int | None = 40, **fields: Any) -> Spec:
    """A GPUJob's spec with a sweep; fields that are None are left out."""
    of_job = {key: fields.pop(key) for key in ("args", "env", "command") if key in fields}
    given = {"algorithm": algorithm, "objective": LOSS, "parameters": {"lr": LR}} | fields
    given = {key: value for key, value in given.items() if value is not None}
    return job(sweep=given, completions=completions, parallelism=4, **of_job)


def with_parameter(spec: Any, name: str = "lr", **fields: Any) -> Spec:
    return sweep(parameters={name: spec}, **fields)


def listed(*trials: dict[str, Any], completions: int | None = None) -> Spec:
    return sweep("list", completions, parameters=None, trials=list(trials))


RIGHT: dict[str, Spec] = {
    "random": sweep(),
    "halton": sweep("halton"),
    "tpe": sweep("tpe"),
    "a grid": sweep("grid", None, parameters={"lr": {"values": [0.1, 0.01]}, "b": {"int": [1, 4]}}),
    "the first of a grid": sweep("grid", 2, parameters={"b": BATCH}),
    "the first of a huge grid": sweep(
        "grid", 2000, parameters={name: {"int": [1, 1000]} for name in ("a", "b", "c")}
    ),
    "a list": listed({"lr": 0.1, "opt": "adam"}, {"opt": "sgd", "lr": 1}),
    "every kind": sweep(
        parameters={
            "u": {"uniform": [0, 0.5]},
            "lu": {"logUniform": [1, 1]},
            "i": {"int": [-5, 5, 5]},
            "v": {"values": ["adam", 1, 0.5, True]},
            "c": {"constant": "x"},
        }
    ),
    "without an objective": sweep(objective=None),
    "a target": sweep(objective={"metric": "acc", "goal": "maximize", "target": 0.99}),
    "more metrics": sweep(objective=LOSS | {"additionalMetrics": ["acc", "f1"]}),
    "median": sweep(earlyStopping={"type": "median", "minTrials": 5, "warmupSteps": 4}),
    "asha": sweep(earlyStopping={"type": "asha", "minResource": 2, "reductionFactor": 4}),
    "rules for failures": sweep(maxFailedTrials=0, failFastExitCodes=[42]),
    "a log": sweep(resultFrom={"logRegex": r"val_loss=([-+.0-9eE]+)"}),
    "a log with names": sweep(resultFrom={"logRegex": r"loss (?P<val_loss>\S+) acc (?P<acc>\S+)"}),
    "as many trials as there may be": sweep(completions=100_000),
    "references": sweep(
        args=["--lr", "${hparam.lr}", "--lr=${trialParameters.lr}", "$${hparam.other}", "${HOME}"],
        env=[{"name": "LR", "value": "${hparam.lr}"}],
    ),
    "names": sweep(parameters=dict.fromkeys(("Opt.lr", "weight-decay", "b", "x_1"), LR)),
}

WRONG: dict[str, Wrong] = {
    "no parameter": Wrong(sweep(parameters=None), "spec.sweep.parameters", "at least one"),
    "bounds turned": Wrong(
        with_parameter({"uniform": [1, 0]}), "spec.sweep.parameters[lr].uniform", says.BOUNDS
    ),
    "log bounds turned": Wrong(
        with_parameter({"logUniform": [1, 0.1]}),
        "spec.sweep.parameters[lr].logUniform",
        says.BOUNDS,
    ),
    "int bounds turned": Wrong(
        with_parameter({"int": [5, 4]}), "spec.sweep.parameters[lr].int", says.BOUNDS
    ),
    "a step of zero": Wrong(
        with_parameter({"int": [1, 4, 0]}), "spec.sweep.parameters[lr].int", says.STEP
    ),
    "a log range from zero": Wrong(
        with_parameter({"logUniform": [0, 1]}),
        "spec.sweep.parameters[lr].logUniform",
        says.LOG_BOUNDS,
    ),
    "a log range below zero": Wrong(
        with_parameter({"logUniform": [-1, 1]}),
        "spec.sweep.parameters[lr].logUniform",
        says.LOG_BOUNDS,
    ),
    "a continuous grid": Wrong(
        sweep("grid"),
        "spec.sweep.parameters",
        "values that can be counted",
        "spec.sweep.parameters[lr]",
    ),
    "list and parameters": Wrong(
        sweep("list", trials=[{"lr": 1}]), "spec.sweep.algorithm", says.LIST_HAS_TRIALS
    ),
    "list without trials": Wrong(
        sweep("list", parameters=None), "spec.sweep.algorithm", says.LIST_HAS_TRIALS
    ),
    "trials without list": Wrong(
        sweep(trials=[{"lr": 1}]), "spec.sweep.algorithm", says.LIST_HAS_TRIALS
    ),
    "tpe without an objective": Wrong(
        sweep("tpe", objective=None), "spec.sweep.objective", says.NEEDS_OBJECTIVE
    ),
    "early stopping without an objective": Wrong(
        sweep(objective=None, earlyStopping={"type": "asha"}),
        "spec.sweep.objective",
        says.NEEDS_OBJECTIVE,
    ),
    "a log without an objective": Wrong(
        sweep(objective=None, resultFrom={"logRegex": "(.)"}),
        "spec.sweep.objective",
        says.NEEDS_OBJECTIVE,
    ),
    "tpe with 21 parameters": Wrong(
        sweep("tpe", parameters={f"p{i}": LR for i in range(21)}),
        "spec.sweep.parameters",
        "at most 20",
    ),
    "no end": Wrong(sweep(completions=None), "spec.completions", says.NEEDS_COMPLETIONS),
    "asha with what median knows": Wrong(
        sweep(earlyStopping={"type": "asha", "warmupSteps": 4}),
        "spec.sweep.earlyStopping",
        says.MEDIAN_ONLY,
    ),
    "median with what asha knows": Wrong(
        sweep(earlyStopping={"type": "median", "reductionFactor": 4}),
        "spec.sweep.earlyStopping",
        says.ASHA_ONLY,
    ),
    "a gang": Wrong(sweep(completions=4) | {"gang": True}, "spec.sweep", says.NOT_WITH_ROLES),
    "a name that YAML took for a boolean": Wrong(
        with_parameter(LR, "false"),
        "spec.sweep.parameters",
        says.NOT_A_BOOLEAN,
        "spec.sweep, parameter 'false'",
    ),
    "a name that ends with an underscore": Wrong(
        with_parameter(LR, "lambda_"),
        "spec.sweep.parameters",
        says.NAMES,
        "spec.sweep, parameter 'lambda_'",
    ),
    "more trials than listed": Wrong(
        listed({"a": 1}, completions=2), "spec.completions", says.MORE_THAN_LISTED
    ),
    "a name that begins with a digit": Wrong(
        with_parameter(LR, "2x"), "spec.sweep.parameters", says.NAMES, "spec.sweep, parameter '2x'"
    ),
}

WRONG_FOR_SCHEMA: dict[str, Wrong] = {
    "an empty space": Wrong(sweep(parameters={}), "spec.sweep.parameters", "at least 1"),
    "no kind": Wrong(with_parameter({}), "spec.sweep.parameters.lr", "at least 1"),
    "two kinds": Wrong(
        with_parameter({"uniform": [0, 1], "values": [1]}),
        "spec.sweep.parameters.lr",
        "at most 1",
    ),
    "one bound": Wrong(
        with_parameter({"uniform": [0]}), "spec.sweep.parameters.lr.uniform", "at least 2"
    ),
    "no value": Wrong(
        with_parameter({"values": []}), "spec.sweep.parameters.lr.values", "at least 1"
    ),
    "too many trials": Wrong(sweep(completions=100_001), "spec.completions", "100000"),
    "an unknown algorithm": Wrong(sweep("annealing"), "spec.sweep.algorithm", "annealing"),
    "an unknown goal": Wrong(
        sweep(objective=LOSS | {"goal": "min"}), "spec.sweep.objective.goal", "min"
    ),
    "a seed below zero": Wrong(sweep(seed=-1), "spec.sweep.seed", "greater than or equal to 0"),
    "more failures than none": Wrong(
        sweep(maxFailedTrials=-1), "spec.sweep.maxFailedTrials", "greater than or equal to 0"
    ),
    "an exit code of success": Wrong(
        sweep(failFastExitCodes=[0]),
        "spec.sweep.failFastExitCodes[0]",
        "greater than or equal to 1",
    ),
}

WRONG_FOR_PYTHON: dict[str, Wrong] = {
    "a value that is a list": Wrong(
        with_parameter({"values": [[1]]}), "spec.sweep.parameters.lr.values[0]", "must be a number"
    ),
    "a value that is nothing": Wrong(
        with_parameter({"values": [None]}), "spec.sweep.parameters.lr.values[0]", "must be a number"
    ),
    "a text without end": Wrong(
        with_parameter({"constant": "x" * 1025}), "spec.sweep.parameters.lr.constant", "1024"
    ),
    "a value twice": Wrong(
        with_parameter({"values": [1, 2, 1.0]}), "spec.sweep.parameters[lr].values", "twice"
    ),
    "a grid of more than may run": Wrong(
        sweep("grid", None, parameters={n: {"int": [1, 1000]} for n in ("a", "b")}),
        "spec.sweep.parameters",
        "1,000,000 combinations",
    ),
    "a listed trial that misses one": Wrong(
        listed({"lr": 1, "b": 2}, {"lr": 1}), "spec.sweep.trials[1]", "misses b"
    ),
    "a listed trial with one more": Wrong(
        listed({"lr": 1}, {"lr": 1, "c": 3}), "spec.sweep.trials[1]", "has c"
    ),
    "a listed trial of nothing": Wrong(listed({}), "spec.sweep.trials[0]", "at least one"),
    "two names for one variable": Wrong(
        sweep(parameters={"a.b": LR, "a-b": LR}), "spec.sweep", "variable HPARAM_A_B"
    ),
    "a variable of that name": Wrong(
        sweep(env=[{"name": "HPARAM_LR", "value": "1"}]), "spec.env[0].name", "parameter lr"
    ),
    "an unknown parameter in args": Wrong(
        sweep(args=["--lr", "${hparam.rate}"]), "spec.args[1]", "no parameter 'rate'"
    ),
    "an unknown parameter in the command": Wrong(
        sweep(command=["x", "${trialParameters.rate}"]), "spec.command[1]", "it has lr"
    ),
    "an unknown parameter in env": Wrong(
        sweep(env=[{"name": "A", "value": "${hparam.}"}]), "spec.env[0].value", "no parameter ''"
    ),
    "an unknown parameter in a template": Wrong(
        long_job(
            {"spec": {"containers": [{"name": "a", "image": "a:1", "args": ["${hparam.x}"]}]}},
            sweep=sweep()["sweep"],
            completions=4,
        ),
        "spec.template.spec.containers[0].args[0]",
        "no parameter 'x'",
    ),
    "no regular expression": Wrong(
        sweep(resultFrom={"logRegex": "("}), "spec.sweep.resultFrom.logRegex", "missing )"
    ),
    "an expression with two groups": Wrong(
        sweep(resultFrom={"logRegex": "(.)(.)"}),
        "spec.sweep.resultFrom.logRegex",
        "exactly one group",
    ),
    "an expression that names other metrics": Wrong(
        sweep(resultFrom={"logRegex": "(?P<acc>.)"}),
        "spec.sweep.resultFrom.logRegex",
        "no group named val_loss",
    ),
}
