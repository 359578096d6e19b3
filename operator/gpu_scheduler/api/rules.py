"""The rules that the API server checks at apply time, and the operator once more.

Each message is read by somebody who has just typed ``kubectl apply``: it names the field and says
what would be right. A rule is one row, see ``Rule``; what CEL cannot see is said in ``validate``.
CEL here stays within what Kubernetes 1.30 knows.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pydantic.alias_generators import to_snake

from gpu_scheduler.api import checkpoint_rules, sweep_rules
from gpu_scheduler.api.rule import Rule
from gpu_scheduler.core.model.quantity import whole
from gpu_scheduler.core.model.units import MIB, MOST_MIB

GPU_ZERO = "must be above 0, for example 0.5; work without a GPU is a plain batch/v1 Job"
GPU_BETWEEN = (
    "above 1 only whole numbers of GPUs, such as 2; for a share of each of several GPUs set "
    "gpuDevices"
)
ONE_SOURCE = "set exactly one of image (one container) and template (a whole pod)"
ONE_AMOUNT = (
    "set exactly one of gpu (for example 0.5), gpuMemory (20Gi), containers, roles and shape"
)
SHAPE_ALONE = "a shape says which GPUs it means; remove gpuModels, or ask by gpu instead of shape"
SHAPE_NAME = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
SHAPE_NAMES = (
    "the name of a shape has at most 63 letters, digits, '-', '_' and '.', and begins and ends "
    "with a letter or digit"
)
SHAPE_OFF_OFFER = (
    "every shape must be one of the numbers in counts; add it there, or leave counts out"
)
ONE_CONTAINER_AMOUNT = "set exactly one of gpu (for example 0.5) and gpuMemory (20Gi)"
BOTH_ARE_SET = "; both are set"
SEVERAL_ARE_SET = "; more than one is set"
NONE_IS_SET = "; none is set"
BESIDE_TEMPLATE = "with template, say this inside template.spec.containers"
DEVICES_ALONE = (
    "gpuDevices goes with gpuMemory or a gpu below 1, as that much on each of several GPUs; "
    "for whole GPUs write gpu: 2"
)
NO_QUANTITY = "is not an amount of memory; write for example 20Gi"
QUANTITY_LARGE = "must be at most 16Ti, more than any GPU has; write for example 20Gi"
NO_AMOUNT = 'is not a quantity; write for example "500m" of CPU or 2Gi of memory'
NO_AMOUNTS = (
    "every amount must be a quantity; write for example 500m of CPU or 2Gi of memory (GB is no "
    "unit of Kubernetes)"
)
AMOUNT_LARGE = "is more than any node has; write for example 4 CPUs or 32Gi of memory"
QUANTITY_SMALL = "must be at least 1Mi; a number without a unit is bytes: for 20 GiB write 20Gi"
_GPU_KEYS = "^(nvidia[.]com/(gpu([.].+|mem|mem-percentage|cores)?|mig-.+)|gpu-scheduler[.]io/.*)$"
GPUS_ELSEWHERE = (
    "GPUs are not asked for in resources: say how much with gpu, gpuMemory or containers, and "
    "remove here what names GPUs (nvidia.com/gpu, gpu-scheduler.io/milligpu and the like)"
)
NAME_CHARS = 63  # of a DNS label
NAME_WITHOUT_DOTS = (
    "metadata.name: has a dot, which hostnames of pods cannot have; write a '-' in its place"
)
NAME_SHORT = (
    f"metadata.name: is too long: with '-' and the number of its last pod it may have {NAME_CHARS} "
    "characters, as the pods' hostnames do; of a job of one pod the name may have 61"
)
RESTART_POLICY = "must be Never or absent: failed pods are started again as often as retries says"
IMMUTABLE = "cannot be changed; delete the job and apply it again, or use another name"
PARALLELISM_FIXED = (
    "without completions parallelism is also the number of pods in all and cannot be changed; "
    "set completions when you create the job"
)
# All host names, of at most 121 characters each, fit into one variable: Linux allows 128 KiB.
MAX_GANG_PODS = 1000
ROLE_SOURCE = "set image or template, not both"
ROLE_AMOUNT = "set gpu or gpuMemory, not both; without either the role gets no GPU"
ROLE_WITHOUT_IMAGE = (
    "set image (or template) for the whole job, or in every role; there is a role without any"
)
ROLES_COUNT = "with roles, each role says how many pods it has: replicas; remove this"
ROLES_PODS = f"at most {MAX_GANG_PODS} pods in all roles together"
GANG_PODS = f"a gang has at most {MAX_GANG_PODS} pods"
GANG_COMPLETIONS = (
    "the pods of a gang all run at once: make completions equal to parallelism, or leave it out"
)
NEEDS_GANG = "is for pods that start together: set roles, or gang: true"
NEEDS_PEERS = "tells pods of each other, and a job without roles has none: set roles, or gang: true"
LIMIT_BELOW_QUOTA = "limit must not be below quota; leave it out for no limit"
NEGATIVE = "must not be negative"
DECIMALS = "at most three decimals, such as 0.333"
UNKNOWN_CONTAINER = (
    "every name must be that of a container in template.spec.containers, or of an init container "
    "there with restartPolicy Always (without a template: main)"
)

SHORT_FORM = ("imagePullPolicy", "command", "args", "env", "workingDir", "resources")
IMMUTABLE_FIELDS = (
    "image",
    *SHORT_FORM,
    "template",
    "gpu",
    "gpuMemory",
    "containers",
    "gpuDevices",
    "gpuModels",
    "shape",
    "minComputeCapability",
    "roles",
    "gang",
    "distinctGPUs",
    "topology",
    "framework",
    "type",
    "completions",
    "retries",
    "timeLimitSeconds",
    "isolation",
    "checkpoint",
    "sweep",
)

# Exact: k / 1000 is the double nearest to a decimal with three digits, and so is what was parsed.
_THREE_DECIMALS = "double(int(self * 1000.0 + 0.5)) / 1000.0 == self"


def asks_for_gpus(key: str) -> bool:
    """Whether a key of a container's resources stands for GPUs, or shares of them."""
    return re.fullmatch(_GPU_KEYS, key) is not None


def _three_decimals(amount: Decimal) -> bool:
    return (amount * 1000) % 1 == 0


def _bytes(amount: str) -> int | None:
    try:
        return whole(amount)
    except ValueError:
        return None


def _none_came_or_went(names: Iterable[str]) -> Rule:
    """Of an update: each field is there if it was there.

    Rules over the whole spec run on each write of a status, too, and each look at a field costs the
    API server a copy of the schema of all: so what a field says is compared at the field, and
    here comes first what settles it with the fewest looks.
    """
    same = {name: f"has(self.{name}) == has(oldSelf.{name})" for name in names}
    first = "".join(f"!({each}) ? '{name}' : " for name, each in same.items())
    return Rule(
        f"self == oldSelf || ({' && '.join(same.values())})",
        IMMUTABLE,
        expression=f"({first}'it') + ' {IMMUTABLE}'",
    )


def _gang(spec: Any) -> bool:
    return bool(spec.roles is not None if spec.gang is None else spec.gang)


def _ways(spec: Any) -> int:
    ways = (spec.gpu, spec.gpu_memory, spec.containers, spec.roles, spec.shape)
    return sum(way is not None for way in ways)


def _beside_template(name: str) -> Rule:
    attribute = to_snake(name)
    return Rule(
        f"!has(self.template) || !has(self.{name})",
        BESIDE_TEMPLATE,
        f".{name}",
        holds=lambda spec: spec.template is None or getattr(spec, attribute) is None,
    )


GPU = (
    Rule("self > 0.0", GPU_ZERO, holds=lambda gpu: gpu > 0),
    Rule(
        f"self <= 0.0 || self > 1.0 || {_THREE_DECIMALS}",
        DECIMALS,
        holds=lambda gpu: gpu <= 0 or gpu > 1 or _three_decimals(gpu),
    ),
    Rule(
        "self <= 1.0 || self == double(int(self))",
        GPU_BETWEEN,
        holds=lambda gpu: gpu <= 1 or gpu == gpu.to_integral_value(),
    ),
)
GPU_MEMORY = (
    Rule("isQuantity(string(self))", NO_QUANTITY, holds=lambda said: _bytes(said) is not None),
    Rule(
        "!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",
        QUANTITY_SMALL,
        holds=lambda said: (found := _bytes(said)) is None or found >= MIB,
    ),
    Rule(
        "!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Ti')) <= 0",
        QUANTITY_LARGE,
        holds=lambda said: (found := _bytes(said)) is None or found <= MOST_MIB * MIB,
    ),
)
RESOURCE_AMOUNTS = (
    Rule(
        f"self.all(k, !k.matches('{_GPU_KEYS}'))",
        GPUS_ELSEWHERE,
        holds=lambda amounts: not any(map(asks_for_gpus, amounts)),
    ),
    Rule(
        "self.all(k, isQuantity(string(self[k])))",
        NO_AMOUNTS,
        instead="_quantity_problems",
    ),
)
AMOUNT = (
    Rule("self >= 0.0", NEGATIVE, holds=lambda amount: amount >= 0),
    Rule(
        f"self < 0.0 || {_THREE_DECIMALS}",
        DECIMALS,
        holds=lambda amount: amount < 0 or _three_decimals(amount),
    ),
)

_DEVICES_WITH = Rule(
    "!has(self.gpuDevices) || has(self.gpuMemory) || (has(self.gpu) && self.gpu < 1.0)",
    DEVICES_ALONE,
    ".gpuDevices",
    holds=lambda ask: (
        ask.gpu_devices is None
        or ask.gpu_memory is not None
        or (ask.gpu is not None and ask.gpu < 1)
    ),
)

GPU_CONTAINER = (
    Rule(
        "has(self.gpu) != has(self.gpuMemory)",
        ONE_CONTAINER_AMOUNT,
        expression=f"'{ONE_CONTAINER_AMOUNT}' + "
        f"(has(self.gpu) ? '{BOTH_ARE_SET}' : '{NONE_IS_SET}')",
        holds=lambda ask: (ask.gpu is None) != (ask.gpu_memory is None),
        end=lambda ask: NONE_IS_SET if ask.gpu is None else BOTH_ARE_SET,
    ),
    _DEVICES_WITH,
)

ROLE = (
    Rule(
        "!has(self.image) || !has(self.template)",
        ROLE_SOURCE,
        holds=lambda role: role.image is None or role.template is None,
    ),
    Rule(
        "!has(self.gpu) || !has(self.gpuMemory)",
        ROLE_AMOUNT,
        holds=lambda role: role.gpu is None or role.gpu_memory is None,
    ),
    *map(_beside_template, SHORT_FORM),
    _DEVICES_WITH,
)
_GANG = "(has(self.gang) ? self.gang : has(self.roles))"

RESTART_POLICY_RULE = Rule(
    "self == 'Never'", RESTART_POLICY, holds=lambda policy: bool(policy == "Never")
)

GPU_JOB_SPEC = (
    Rule(
        "has(self.image) != has(self.template) || (has(self.roles) && !has(self.image))",
        ONE_SOURCE,
        expression=f"'{ONE_SOURCE}' + (has(self.image) ? '{BOTH_ARE_SET}' : '{NONE_IS_SET}')",
        holds=lambda spec: (
            (spec.image is None) != (spec.template is None)
            or (spec.roles is not None and spec.image is None)
        ),
        end=lambda spec: NONE_IS_SET if spec.image is None else BOTH_ARE_SET,
    ),
    Rule(
        "[has(self.gpu), has(self.gpuMemory), has(self.containers), has(self.roles), "
        "has(self.shape)].exists_one(x, x)",
        ONE_AMOUNT,
        expression=f"'{ONE_AMOUNT}' + (has(self.gpu) || has(self.gpuMemory) || "
        f"has(self.containers) || has(self.roles) || has(self.shape) ? '{SEVERAL_ARE_SET}' "
        f": '{NONE_IS_SET}')",
        holds=lambda spec: _ways(spec) == 1,
        end=lambda spec: SEVERAL_ARE_SET if _ways(spec) else NONE_IS_SET,
    ),
    *map(_beside_template, SHORT_FORM),
    _DEVICES_WITH,
    Rule(
        "!has(self.containers) || self.containers.all(c, has(self.template) ? "
        "self.template.spec.containers.exists(t, t.name == c.name) || "
        "(has(self.template.spec.initContainers) && self.template.spec.initContainers.exists(t, "
        "has(t.name) && t.name == c.name && has(t.restartPolicy) && t.restartPolicy == 'Always')) "
        ": c.name == 'main')",
        UNKNOWN_CONTAINER,
        ".containers",
        instead="_listed_problems",
    ),
    Rule(
        "!has(self.roles) || has(self.image) || has(self.template) || "
        "self.roles.all(r, has(r.image) || has(r.template))",
        ROLE_WITHOUT_IMAGE,
        ".roles",
        holds=lambda spec: (
            spec.image is not None
            or spec.template is not None
            or all(r.image is not None or r.template is not None for r in spec.roles or ())
        ),
    ),
    Rule(
        f"!has(self.roles) || self.roles.map(r, r.replicas).sum() <= {MAX_GANG_PODS}",
        ROLES_PODS,
        ".roles",
        holds=lambda spec: sum(role.replicas for role in spec.roles or ()) <= MAX_GANG_PODS,
    ),
    Rule(
        "!has(self.roles) || self.parallelism == 1",
        ROLES_COUNT,
        ".parallelism",
        holds=lambda spec: spec.roles is None or spec.parallelism == 1,
    ),
    Rule(
        "!has(self.roles) || !has(self.completions)",
        ROLES_COUNT,
        ".completions",
        holds=lambda spec: spec.roles is None or spec.completions is None,
    ),
    Rule(
        f"!{_GANG} || !has(self.completions) || self.completions == self.parallelism",
        GANG_COMPLETIONS,
        ".completions",
        holds=lambda spec: not _gang(spec) or spec.completions in (None, spec.parallelism),
    ),
    Rule(
        f"!{_GANG} || self.parallelism <= {MAX_GANG_PODS}",
        GANG_PODS,
        ".parallelism",
        holds=lambda spec: not _gang(spec) or spec.parallelism <= MAX_GANG_PODS,
    ),
    Rule(
        f"!has(self.distinctGPUs) || {_GANG}",
        f"distinctGPUs {NEEDS_GANG}",
        ".distinctGPUs",
        holds=lambda spec: spec.distinct_gpus is None or _gang(spec),
    ),
    Rule(
        f"!has(self.topology) || {_GANG}",
        f"topology {NEEDS_GANG}",
        ".topology",
        holds=lambda spec: spec.topology is None or _gang(spec),
    ),
    Rule(
        f"!has(self.framework) || has(self.roles) || {_GANG}",
        f"framework {NEEDS_PEERS}",
        ".framework",
        holds=lambda spec: spec.framework is None or spec.roles is not None or _gang(spec),
    ),
    Rule(
        "!has(self.shape) || !has(self.gpuModels)",
        SHAPE_ALONE,
        ".gpuModels",
        holds=lambda spec: spec.shape is None or spec.gpu_models is None,
    ),
    _none_came_or_went(IMMUTABLE_FIELDS),
    Rule(
        sweep_rules.COMPLETIONS_FIXED,
        f"completions {IMMUTABLE}",
        ".completions",
        expression=f"has(self.sweep) ? 'completions {sweep_rules.ONLY_MORE}' : "
        f"'completions {IMMUTABLE}'",
    ),
    *checkpoint_rules.IN_JOB,
    *sweep_rules.IN_JOB,
    Rule(
        "self.parallelism == oldSelf.parallelism || has(self.completions) || has(self.sweep)",
        PARALLELISM_FIXED,
        ".parallelism",
    ),
)
_INSTEAD = {"retries": "; kubectl gpu retry NAME runs a failed one again as it is"}
GPU_JOB_FIELDS = {
    name: Rule("self == oldSelf", f"{name} {IMMUTABLE}{_INSTEAD.get(name, '')}")
    for name in IMMUTABLE_FIELDS
    if name != "completions"
}
"""By field of a GPUJob's spec."""

GPU_PROJECT_SPEC = (
    Rule(
        "!has(self.limit) || self.limit >= self.quota",
        LIMIT_BELOW_QUOTA,
        ".limit",
        holds=lambda spec: spec.limit is None or spec.limit >= spec.quota,
    ),
)

# Written over all that names are made of, so that of roles and sweeps the least is asked here: how
# long theirs may be follows from more than the name.
_PODS = "(has(self.spec.completions) ? self.spec.completions : self.spec.parallelism)"


def _most_name(quote: str = "") -> str:
    """CEL: how many characters a name may have; a text between quotes."""
    most = [f"{quote}{NAME_CHARS - 1 - digits}{quote}" for digits in range(1, 6)]
    by_pods = "".join(f"{_PODS} <= {10 ** (n + 1)} ? {most[n]} : " for n in range(4))
    return f"(has(self.spec.roles) || has(self.spec.sweep) ? {most[0]} : {by_pods}{most[4]})"


GPU_JOB = (
    Rule(
        "!self.metadata.name.contains('.')",
        NAME_WITHOUT_DOTS,
        instead="name_problems",
        at_creation=True,
    ),
    Rule(
        f"size(self.metadata.name) <= {_most_name()}",
        NAME_SHORT,
        expression="'metadata.name: is too long: with the number of its last pod at most ' + "
        f"{_most_name(chr(39))} + ' characters are possible'",
        instead="name_problems",
        at_creation=True,
    ),
)
"""Of the whole object."""

SHAPES = (
    Rule(
        f"self.all(name, size(name) <= 63 && name.matches('{SHAPE_NAME}'))",
        SHAPE_NAMES,
        instead="class_problems",
    ),
)
GPU_CLASS_SPEC = (
    Rule(
        "!has(self.counts) || !has(self.shapes) || "
        "self.shapes.all(name, self.shapes[name] in self.counts)",
        SHAPE_OFF_OFFER,
        ".shapes",
        holds=lambda spec: (
            spec.counts is None or all(n in spec.counts for n in (spec.shapes or {}).values())
        ),
    ),
)
