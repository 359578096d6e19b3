"""The rules of ``spec.sweep`` that the API server checks, as CEL, and their sentences.

The values of a choice may be of any type, which keeps them out of CEL's sight; what depends on them
(the size of a grid, a list of trials) is judged by ``sweep_problems`` in Python, as is everything
once more in rows that can.
"""

from gpu_scheduler.api.rule import Rule
from gpu_scheduler.api.search import MAX_ADAPTIVE

NAME = r"[A-Za-z]([-A-Za-z0-9_.]{0,48}[A-Za-z0-9])?"

BOUNDS = "the first bound must not be above the second: [low, high]"
LOG_BOUNDS = "both bounds of logUniform must be above 0, for example [1.0e-5, 0.1]"
STEP = "int is [low, high] or [low, high, step] with a step of at least 1"
ONE_KIND = "set exactly one of uniform, logUniform, int, values and constant"
NAMES = (
    "a parameter's name begins with a letter, ends with a letter or digit and has at most 50 "
    "letters, digits, '_', '-' and '.'"
)
NOT_A_BOOLEAN = (
    "a parameter is called true or false, which is what YAML reads for y, yes and on, and for n, "
    "no and off: put its name in quotes"
)
NEEDS_PARAMETERS = "needs at least one parameter, for example lr: {logUniform: [1.0e-5, 0.1]}"
LIST_HAS_TRIALS = (
    "algorithm list takes its values from trials, all others from parameters: set the one and "
    "leave out the other"
)
GRID_DISCRETE = (
    "a grid needs values that can be counted: write values: [0.1, 0.01] or int: [1, 8], or use "
    "random or halton"
)
NEEDS_OBJECTIVE = (
    "is missing: algorithm tpe, earlyStopping and resultFrom need to know the metric, for example "
    "objective: {metric: val_loss, goal: minimize}"
)
NEEDS_COMPLETIONS = (
    "is missing: with this algorithm there is no end of trials; say how many are to run"
)
TPE_PARAMETERS = "tpe searches at most 20 parameters"
TPE_WIDTH = "for tpe the distance between the bounds must be a finite number; bring them closer"
MORE_THAN_LISTED = "there are fewer trials in the list; take completions out to run all of them"
NOT_WITH_ROLES = "a sweep has one pod per trial; leave out roles and gang"
ONLY_MORE = "of a sweep can only be raised; delete the job and apply it again for fewer trials"
MEDIAN_ONLY = "minTrials and warmupSteps belong to type median"
ASHA_ONLY = "minResource and reductionFactor belong to type asha"

PARAMETER = (
    Rule(
        "!has(self.uniform) || self.uniform[0] <= self.uniform[1]",
        BOUNDS,
        ".uniform",
        holds=lambda each: each.uniform is None or each.uniform[0] <= each.uniform[1],
    ),
    Rule(
        "!has(self.logUniform) || self.logUniform[0] <= self.logUniform[1]",
        BOUNDS,
        ".logUniform",
        holds=lambda each: each.log_uniform is None or each.log_uniform[0] <= each.log_uniform[1],
    ),
    Rule(
        "!has(self.logUniform) || (self.logUniform[0] > 0.0 && self.logUniform[1] > 0.0)",
        LOG_BOUNDS,
        ".logUniform",
        holds=lambda each: each.log_uniform is None or min(each.log_uniform) > 0,
    ),
    Rule(
        "!has(self.int) || self.int[0] <= self.int[1]",
        BOUNDS,
        ".int",
        holds=lambda each: each.integers is None or each.integers[0] <= each.integers[1],
    ),
    Rule(
        "!has(self.int) || self.int.size() < 3 || self.int[2] >= 1",
        STEP,
        ".int",
        holds=lambda each: all(step >= 1 for step in (each.integers or ())[2:]),
    ),
)
PARAMETERS = (
    Rule(f"self.all(name, name.matches('^{NAME}$'))", NAMES, instead="_name_problems"),
    Rule("self.all(name, !(name in ['true', 'false']))", NOT_A_BOOLEAN, instead="_name_problems"),
)
EARLY_STOPPING = (
    Rule(
        "self.type == 'median' || !(has(self.minTrials) || has(self.warmupSteps))",
        MEDIAN_ONLY,
        holds=lambda said: (
            said.type == "median" or (said.min_trials is None and said.warmup_steps is None)
        ),
    ),
    Rule(
        "self.type == 'asha' || !(has(self.minResource) || has(self.reductionFactor))",
        ASHA_ONLY,
        holds=lambda said: (
            said.type == "asha" or (said.min_resource is None and said.reduction_factor is None)
        ),
    ),
)
SWEEP = (
    Rule(
        "(self.algorithm == 'list') ? (has(self.trials) && !has(self.parameters)) : "
        "!has(self.trials)",
        LIST_HAS_TRIALS,
        ".algorithm",
        holds=lambda sweep: (
            sweep.trials is not None and sweep.parameters is None
            if sweep.algorithm == "list"
            else sweep.trials is None
        ),
    ),
    Rule(
        "self.algorithm == 'list' || has(self.parameters)",
        NEEDS_PARAMETERS,
        ".parameters",
        holds=lambda sweep: sweep.algorithm == "list" or bool(sweep.parameters),
    ),
    Rule(
        "self.algorithm != 'grid' || !has(self.parameters) || self.parameters.all(name, "
        "!has(self.parameters[name].uniform) && !has(self.parameters[name].logUniform))",
        GRID_DISCRETE,
        ".parameters",
        instead="_search_problems",
    ),
    Rule(
        "has(self.objective) || (self.algorithm != 'tpe' && !has(self.earlyStopping) && "
        "!has(self.resultFrom))",
        NEEDS_OBJECTIVE,
        ".objective",
        holds=lambda sweep: (
            sweep.objective is not None
            or not (sweep.algorithm == "tpe" or sweep.early_stopping or sweep.result_from)
        ),
    ),
    Rule(
        "self.algorithm != 'tpe' || !has(self.parameters) || self.parameters.size() <= 20",
        TPE_PARAMETERS,
        ".parameters",
        holds=lambda sweep: sweep.algorithm != "tpe" or len(sweep.parameters or ()) <= MAX_ADAPTIVE,
    ),
)
IN_JOB = (
    Rule(
        "!has(self.sweep) || has(self.completions) || self.sweep.algorithm in ['grid', 'list']",
        NEEDS_COMPLETIONS,
        ".completions",
        holds=lambda spec: (
            spec.sweep is None
            or spec.completions is not None
            or spec.sweep.algorithm in ("grid", "list")
        ),
    ),
    Rule(
        "!has(self.sweep) || !(has(self.roles) || (has(self.gang) && self.gang))",
        NOT_WITH_ROLES,
        ".sweep",
        holds=lambda spec: spec.sweep is None or not (spec.roles is not None or spec.gang),
    ),
    Rule(
        "!has(self.sweep) || !has(self.sweep.trials) || !has(self.completions) || "
        "self.completions <= self.sweep.trials.size()",
        f"completions: {MORE_THAN_LISTED}",
        ".completions",
        holds=lambda spec: (
            spec.sweep is None
            or spec.sweep.trials is None
            or (spec.completions or 0) <= len(spec.sweep.trials)
        ),
    ),
)
"""Over a GPUJob's spec."""

COMPLETIONS_FIXED = (
    "!has(self.completions) || !has(oldSelf.completions) || "
    "self.completions == oldSelf.completions || "
    "(has(self.sweep) && self.completions > oldSelf.completions)"
)
"""CEL: completions are what they were, or more of a sweep."""
