"""What is wrong with a sweep, field by field, as far as can be told without the cluster.

The CRD's rules once more (``sweep_rules``), and what they cannot see: values of any type, sizes of
grids, references to parameters in a pod template, names that would share a variable.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from math import isinf
from typing import Any

from gpu_scheduler.api import sweep_rules
from gpu_scheduler.api.gpujob import MAX_PODS, GPUJobSpec
from gpu_scheduler.api.hparam_refs import env_name, references
from gpu_scheduler.api.log_regex import LogRegexError, compiled
from gpu_scheduler.api.names import segment_name
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.rule import broken
from gpu_scheduler.api.search import MAX_VALUES_BYTES, Algorithm
from gpu_scheduler.api.sweep import ParameterSpec, SweepSpec

_NAME = re.compile(sweep_rules.NAME)
_LABEL_LENGTH = 63
_SWEEP = "spec.sweep"
_PARAMETERS = f"{_SWEEP}.parameters"


def sweep_problems(spec: GPUJobSpec) -> Iterator[Problem]:
    """What is wrong with the sweep of a GPUJob; nothing when it has none."""
    if spec.sweep is None:
        return
    found = [*_search_problems(spec.sweep), *_rule_problems(spec.sweep)]
    yield from found
    if not found:
        yield from _count_problems(spec.sweep, spec.completions)
        names = spec.sweep.search().names
        yield from _name_problems(names)
        yield from _template_problems(spec, frozenset(names))


def sweep_name_problems(name: str, spec: GPUJobSpec) -> Iterator[Problem]:
    """What is wrong with the name of a GPUJob that is a sweep."""
    if spec.sweep is None:
        return
    longest = _LABEL_LENGTH - len(segment_name("", 99)) - len("-999")
    if len(name) > longest:
        yield Problem(
            "metadata.name",
            f"has {len(name)} characters; of a sweep at most {longest} are possible, as the names "
            "of its Jobs and pods begin with it",
        )


def _search_problems(sweep: SweepSpec) -> Iterator[Problem]:
    yield from broken(sweep_rules.SWEEP, sweep, _SWEEP)
    for name, parameter in (sweep.parameters or {}).items():
        yield from _parameter_problems(f"{_PARAMETERS}[{name}]", parameter)
        continuous = parameter.uniform is not None or parameter.log_uniform is not None
        if sweep.algorithm is Algorithm.GRID and continuous:
            yield Problem(f"{_PARAMETERS}[{name}]", sweep_rules.GRID_DISCRETE)
    if sweep.algorithm is Algorithm.TPE:
        yield from _adaptive_problems(sweep.parameters or {})
    if sweep.algorithm is Algorithm.LIST and sweep.trials is not None:
        yield from _listed_problems(sweep.trials)


def _adaptive_problems(parameters: Mapping[str, ParameterSpec]) -> Iterator[Problem]:
    """A thousand trials with their values must fit into one object, see ``sweeps.core.rows``."""
    for name, parameter in parameters.items():
        bounds = parameter.uniform
        if bounds is not None and isinf(bounds[1] - bounds[0]):
            yield Problem(f"{_PARAMETERS}[{name}].uniform", sweep_rules.TPE_WIDTH)
    longest = sum(map(_longest_bytes, parameters.values()))
    if longest > MAX_VALUES_BYTES:
        yield Problem(
            _PARAMETERS,
            f"the longest values of all parameters have {longest:,} bytes together; tpe stores "
            f"them with each trial, and {MAX_VALUES_BYTES} fit: let the program look up long texts "
            "by short names",
        )


def _longest_bytes(parameter: ParameterSpec) -> int:
    """The most bytes of JSON, comma included, that a value of the parameter can have."""
    choices = [parameter.constant] if parameter.values is None else parameter.values
    if parameter.uniform is not None or parameter.log_uniform is not None:
        return len("-2.2250738585072014e-308,")
    if parameter.integers is not None:
        choices = list(parameter.integers)
    return max(len(json.dumps(choice, ensure_ascii=False).encode()) + 1 for choice in choices)


def _parameter_problems(field: str, parameter: ParameterSpec) -> Iterator[Problem]:
    kinds = (
        parameter.uniform,
        parameter.log_uniform,
        parameter.integers,
        parameter.values,
        parameter.constant,
    )
    if sum(kind is not None for kind in kinds) != 1:
        yield Problem(field, sweep_rules.ONE_KIND)
        return
    yield from broken(sweep_rules.PARAMETER, parameter, field)
    options = parameter.values or ()
    if len({(type(option), option) for option in options}) < len(options):
        yield Problem(f"{field}.values", "has a value twice; every value once is enough")


def _listed_problems(trials: list[dict[str, Any]]) -> Iterator[Problem]:
    first = trials[0].keys()
    if not first:
        yield Problem(f"{_SWEEP}.trials[0]", "needs at least one parameter")
    for index, trial in enumerate(trials):
        missing, more = sorted(first - trial.keys()), sorted(trial.keys() - first)
        if missing:
            yield Problem(
                f"{_SWEEP}.trials[{index}]",
                f"misses {', '.join(missing)}, which trials[0] has; every trial needs the same "
                "parameters",
            )
        elif more:
            yield Problem(
                f"{_SWEEP}.trials[{index}]",
                f"has {', '.join(more)}, which trials[0] misses; every trial needs the same "
                "parameters",
            )


def _rule_problems(sweep: SweepSpec) -> Iterator[Problem]:
    yield from broken(sweep_rules.EARLY_STOPPING, sweep.early_stopping, f"{_SWEEP}.earlyStopping")
    if sweep.result_from is not None and sweep.objective is not None:
        try:
            compiled(sweep.result_from.log_regex, sweep.objective.metric)
        except LogRegexError as error:
            yield Problem(f"{_SWEEP}.resultFrom.logRegex", str(error))


def _count_problems(sweep: SweepSpec, completions: int | None) -> Iterator[Problem]:
    size = sweep.search().size()
    if size is not None and completions is None and size > MAX_PODS:
        yield Problem(
            _PARAMETERS,
            f"the grid has {size:,} combinations; at most {MAX_PODS:,} trials are possible: set "
            "completions to run the first ones, or use random or halton",
        )


def _name_problems(names: tuple[str, ...]) -> Iterator[Problem]:
    by_variable: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if not _NAME.fullmatch(name):
            yield Problem(f"{_SWEEP}, parameter {name!r}", sweep_rules.NAMES)
        if name in ("true", "false"):
            yield Problem(f"{_SWEEP}, parameter {name!r}", sweep_rules.NOT_A_BOOLEAN)
        by_variable[env_name(name)].append(name)
    for variable, same in by_variable.items():
        if len(same) > 1:
            yield Problem(
                _SWEEP, f"{' and '.join(same)} would both be the variable {variable}; rename one"
            )


def _template_problems(spec: GPUJobSpec, names: Collection[str]) -> Iterator[Problem]:
    variables = {env_name(name): name for name in names}
    for field, container in _containers(spec):
        for key in ("command", "args"):
            texts = container.get(key)
            for index, text in enumerate(texts if isinstance(texts, list) else ()):
                yield from _unknown(f"{field}.{key}[{index}]", text, names)
        entries = container.get("env")
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue  # the API server says so in the dry run
            here = f"{field}.env[{index}]"
            yield from _unknown(f"{here}.value", entry.get("value"), names)
            variable = entry.get("name")
            if isinstance(variable, str) and variable in variables:
                yield Problem(
                    f"{here}.name",
                    f"{variable} is what the parameter {variables[variable]} is called in the "
                    "program; rename the one or the other",
                )


def _containers(spec: GPUJobSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if spec.template is None:
        short = {"command", "args", "env"}
        yield "spec", spec.model_dump(mode="json", by_alias=True, include=short)
        return
    pod = spec.template.get("spec")
    for kind in ("initContainers", "containers"):
        each = pod.get(kind) if isinstance(pod, dict) else None
        for index, container in enumerate(each if isinstance(each, list) else ()):
            if isinstance(container, dict):
                yield f"spec.template.spec.{kind}[{index}]", container


def _unknown(field: str, text: object, names: Collection[str]) -> Iterator[Problem]:
    for name in references(text) if isinstance(text, str) else ():
        if name not in names:
            yield Problem(
                field,
                f"the sweep has no parameter {name!r}; it has {', '.join(sorted(names))} "
                "(for the text itself write $${…})",
            )
