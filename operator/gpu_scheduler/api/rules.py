"""The rules that the API server checks at apply time, as CEL.

Each message is read by somebody who has just typed ``kubectl apply``: it names the field and says
what would be right. ``validate`` checks the same in Python, because an operator may run beside
an older CRD. CEL here stays within what Kubernetes 1.30 knows.
"""

from gpu_scheduler.api import sweep_rules
from gpu_scheduler.api.cel import Rule

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
AMOUNT_LARGE = "is more than any node has; write for example 4 CPUs or 32Gi of memory"
QUANTITY_SMALL = "must be at least 1Mi; a number without a unit is bytes: for 20 GiB write 20Gi"
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
    "sweep",
)

# Exact: k / 1000 is the double nearest to a decimal with three digits, and so is what was parsed.
_THREE_DECIMALS = "double(int(self * 1000.0 + 0.5)) / 1000.0 == self"

GPU = (
    Rule("self > 0.0", GPU_ZERO),
    Rule(f"self <= 0.0 || self > 1.0 || {_THREE_DECIMALS}", DECIMALS),
    Rule("self <= 1.0 || self == double(int(self))", GPU_BETWEEN),
)
GPU_MEMORY = (
    Rule("isQuantity(string(self))", NO_QUANTITY),
    Rule(
        "!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",
        QUANTITY_SMALL,
    ),
    Rule(
        "!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Ti')) <= 0",
        QUANTITY_LARGE,
    ),
)
AMOUNT = (
    Rule("self >= 0.0", NEGATIVE),
    Rule(f"self < 0.0 || {_THREE_DECIMALS}", DECIMALS),
)

_DEVICES_WITH = Rule(
    "!has(self.gpuDevices) || has(self.gpuMemory) || (has(self.gpu) && self.gpu < 1.0)",
    DEVICES_ALONE,
    ".gpuDevices",
)


def _fixed(name: str) -> str:
    """CEL: the field is what it was, also when it was absent."""
    old, new = f"oldSelf.{name}", f"self.{name}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


GPU_CONTAINER = (
    Rule(
        "has(self.gpu) != has(self.gpuMemory)",
        ONE_CONTAINER_AMOUNT,
        expression=f"'{ONE_CONTAINER_AMOUNT}' + "
        f"(has(self.gpu) ? '{BOTH_ARE_SET}' : '{NONE_IS_SET}')",
    ),
    _DEVICES_WITH,
)

ROLE = (
    Rule("!has(self.image) || !has(self.template)", ROLE_SOURCE),
    Rule("!has(self.gpu) || !has(self.gpuMemory)", ROLE_AMOUNT),
    *(
        Rule(f"!has(self.template) || !has(self.{name})", BESIDE_TEMPLATE, f".{name}")
        for name in SHORT_FORM
    ),
    _DEVICES_WITH,
)
_GANG = "(has(self.gang) ? self.gang : has(self.roles))"

RESTART_POLICY_RULE = Rule("self == 'Never'", RESTART_POLICY)

GPU_JOB_SPEC = (
    Rule(
        "has(self.image) != has(self.template) || (has(self.roles) && !has(self.image))",
        ONE_SOURCE,
        expression=f"'{ONE_SOURCE}' + (has(self.image) ? '{BOTH_ARE_SET}' : '{NONE_IS_SET}')",
    ),
    Rule(
        "[has(self.gpu), has(self.gpuMemory), has(self.containers), has(self.roles), "
        "has(self.shape)].exists_one(x, x)",
        ONE_AMOUNT,
        expression=f"'{ONE_AMOUNT}' + (has(self.gpu) || has(self.gpuMemory) || "
        f"has(self.containers) || has(self.roles) || has(self.shape) ? '{SEVERAL_ARE_SET}' "
        f": '{NONE_IS_SET}')",
    ),
    *(
        Rule(f"!has(self.template) || !has(self.{name})", BESIDE_TEMPLATE, f".{name}")
        for name in SHORT_FORM
    ),
    _DEVICES_WITH,
    Rule(
        "!has(self.containers) || self.containers.all(c, has(self.template) ? "
        "self.template.spec.containers.exists(t, t.name == c.name) || "
        "(has(self.template.spec.initContainers) && self.template.spec.initContainers.exists(t, "
        "has(t.name) && t.name == c.name && has(t.restartPolicy) && t.restartPolicy == 'Always')) "
        ": c.name == 'main')",
        UNKNOWN_CONTAINER,
        ".containers",
    ),
    Rule(
        "!has(self.roles) || has(self.image) || has(self.template) || "
        "self.roles.all(r, has(r.image) || has(r.template))",
        ROLE_WITHOUT_IMAGE,
        ".roles",
    ),
    Rule(
        f"!has(self.roles) || self.roles.map(r, r.replicas).sum() <= {MAX_GANG_PODS}",
        ROLES_PODS,
        ".roles",
    ),
    Rule("!has(self.roles) || self.parallelism == 1", ROLES_COUNT, ".parallelism"),
    Rule("!has(self.roles) || !has(self.completions)", ROLES_COUNT, ".completions"),
    Rule(
        f"!{_GANG} || !has(self.completions) || self.completions == self.parallelism",
        GANG_COMPLETIONS,
        ".completions",
    ),
    Rule(f"!{_GANG} || self.parallelism <= {MAX_GANG_PODS}", GANG_PODS, ".parallelism"),
    *(
        Rule(f"!has(self.{name}) || {_GANG}", f"{name} {NEEDS_GANG}", f".{name}")
        for name in ("distinctGPUs", "topology")
    ),
    Rule(
        f"!has(self.framework) || has(self.roles) || {_GANG}",
        f"framework {NEEDS_PEERS}",
        ".framework",
    ),
    Rule("!has(self.shape) || !has(self.gpuModels)", SHAPE_ALONE, ".gpuModels"),
    *(
        Rule(_fixed(name), f"{name} {IMMUTABLE}", f".{name}")
        for name in IMMUTABLE_FIELDS
        if name != "completions"
    ),
    Rule(
        sweep_rules.COMPLETIONS_FIXED,
        f"completions {IMMUTABLE}",
        ".completions",
        expression=f"has(self.sweep) ? 'completions {sweep_rules.ONLY_MORE}' : "
        f"'completions {IMMUTABLE}'",
    ),
    *sweep_rules.IN_JOB,
    Rule(
        "has(self.completions) || has(self.sweep) || self.parallelism == oldSelf.parallelism",
        PARALLELISM_FIXED,
        ".parallelism",
    ),
)

GPU_PROJECT_SPEC = (
    Rule("!has(self.limit) || self.limit >= self.quota", LIMIT_BELOW_QUOTA, ".limit"),
)

SHAPES = (Rule(f"self.all(name, size(name) <= 63 && name.matches('{SHAPE_NAME}'))", SHAPE_NAMES),)
GPU_CLASS_SPEC = (
    Rule(
        "!has(self.counts) || !has(self.shapes) || "
        "self.shapes.all(name, self.shapes[name] in self.counts)",
        SHAPE_OFF_OFFER,
        ".shapes",
    ),
)
