"""Every name that this product writes on an object, in one place."""

import hashlib
from collections.abc import Callable

from gpu_scheduler.limits.bounded import remembered

GROUP = "gpu-scheduler.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

SCHEDULER_NAME = "gpu-scheduler"  # spec.schedulerName of pods on the bind path
GATE = f"{GROUP}/placement"  # scheduling gate of pods on the gate path
PRIORITY_CLASS = "gpu-scheduler-gated"  # preemptionPolicy Never, shipped by the chart
RUNTIME_CLASS = "nvidia"

# Annotations on pods. Set by the operator alone, in the one write that places the pod; the
# template carries only the harmless default `void` for devices.
ALLOCATION = f"{GROUP}/allocation"  # the ledger, see api.allocation
# Whose write placed the pod, as holder/number: the API server refuses any other term than the one
# that our LimitRange has here (docs/adr/0031, 0043). The label says to its policy, before that
# looks at anything, that a request places a pod.
TERM = f"{GROUP}/term"
LABEL_PATH = f"{GROUP}/path"  # bind or gate
# Changed when nobody knows what became of a placing write, so that it can land no more.
TOUCHED = f"{GROUP}/touched"
# On pods of the agent: what it needs to know of its node, see api.orders.
ORDERS = f"{GROUP}/orders"

# On a Job: it was made narrower, and its controller may have more to do, see state.counting.
NARROWED = f"{GROUP}/narrowed"

# On running pods: when its work was last saved, RFC 3339. Written by the operator when the program
# says so, and by whoever may change the pod. What it did since is what an eviction loses.
CHECKPOINTED = f"{GROUP}/checkpointed-at"
# Of a job with a checkpoint, set in the write that places a pod: where it says that it has saved.
CHECKPOINT_URL = f"{GROUP}/checkpoint-url"
# With what pods that report say who they are, see jobs.report_token. No secret stands on a pod.
REPORT_AUDIENCE = f"{GROUP}/reports"
TOKEN_VOLUME = "gpu-scheduler-token"  # reserved in templates of jobs that report
TOKEN_PATH = f"/var/run/secrets/{GROUP}"
FILE_TOKEN = "token"
CHECKPOINT_VOLUME = "gpu-scheduler-checkpoint"  # reserved in templates of such a job

# On pods that ask for a share by themselves, see api.share_words. The first may be a label, too.
ASK_GPU = f"{GROUP}/gpu"
ASK_MEMORY = f"{GROUP}/gpu-memory"
ASK_DEVICES = f"{GROUP}/gpu-devices"
ASK_CONTAINER = f"{GROUP}/gpu-container"
ASK_MODELS = f"{GROUP}/gpu-models"
ASK_TYPE = f"{GROUP}/type"
ASK_PRIORITY = f"{GROUP}/priority"
ASK_ISOLATION = f"{GROUP}/isolation"
ASK_TIME_LIMIT = f"{GROUP}/time-limit"
LABEL_GANG = f"{GROUP}/gang"
GANG_SIZE = f"{GROUP}/gang-size"
DISTINCT_GPUS = f"{GROUP}/distinct-gpus"
# On namespaces: pods there may ask with another scheduler's keys as well, see api.share_keys.
COMPAT = f"{GROUP}/compat"
# In the limits of their containers: integers, so that a Deployment may have them.
RESOURCE_MILLI = f"{GROUP}/milligpu"
RESOURCE_MIB = f"{GROUP}/gpu-mib"
# What such a pod asked for, word for word, by the numbers of its containers. Whoever makes it ours
# writes this; it says what is asked and never what is held.
ASKED = f"{GROUP}/asked"
# And this label, for people and selectors. Of pods that were rendered the policy makes nothing, and
# goes on to look whether others put containers into them.
LABEL_SHARE = f"{GROUP}/share"
SHARE_MADE, SHARE_RENDERED = "true", "rendered"

# Labels on Jobs and pods.
LABEL_JOB = f"{GROUP}/job"
LABEL_PROJECT = f"{GROUP}/project"
LABEL_ROLE = f"{GROUP}/role"  # for people and selectors; absent in a job without roles
LABEL_FIRST_RANK = f"{GROUP}/first-rank"  # rank of the role's pod number 0, where ranks are told

# Annotation on pods of a GPUJob whose time limit is their template's own.
LIMIT_OF_TEMPLATE = f"{GROUP}/time-limit-of-template"

# Annotation on placed pods with the label above: their own rank, for their environment.
RANK = f"{GROUP}/rank"

# Of a sweep. On its pods, set in the write that places them: the trial's number, its parameters as
# one JSON object and one by one, and where it reports to.
TRIAL = f"{GROUP}/trial"
TRIALS = f"{GROUP}/trials"  # how many the sweep has
HPARAMS = f"{GROUP}/hparams"
REPORT_URL = f"{GROUP}/report-url"
# On its Jobs: number of the segment and of its first trial.
SEGMENT = f"{GROUP}/segment"
FIRST_TRIAL = f"{GROUP}/first-trial"
FILE_HPARAMS = "hparams.json"  # under MOUNT_PATH
RESULTS_KEY = "trials"  # of a results ConfigMap: the rows, see sweeps.core.rows

# On Jobs: a digest of the rendered pod template and path, to see a drift.
RENDERED = f"{GROUP}/rendered"
# On Jobs, one per index: when its pod last had to move, and which one it was, see api.moved.
MOVED_PREFIX = f"{GROUP}/moved-"

# What kubectl logs and exec take when they are not told which container.
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


CAP_PREFIX = "GPUCAP_"  # of variables that libgpucap obeys where there is no container
VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"  # what NVIDIA's container runtime obeys
VOID = "void"  # NVIDIA's word for "no device at all"

MOUNT_PATH = "/etc/gpu-scheduler"  # downward-API volume of each GPU container
FILE_MEMORY_LIMIT = "memory-limit-mib"
FILE_CONTEXT = "context-mib"
FILE_DEVICES = "devices"

# libgpucap inside a GPU container, see docs/adr/0016.
CAP_VOLUME = "gpu-scheduler-cap"  # emptyDir
CAP_CONTAINER = "gpu-scheduler-cap"  # the init container that fills it
CAP_FOLDER = "/opt/gpu-scheduler"  # all of it is ours
CAP_LIBRARY_PATH = f"{CAP_FOLDER}/lib"
CAP_STATE_PATH = f"{CAP_FOLDER}/state"
CAP_PRELOAD_PATH = "/etc/ld.so.preload"

JOB_TRACKING = "batch.kubernetes.io/job-tracking"  # finalizer of a Job's pod that is not counted

# Conditions on pods, set through pods/status.
CONDITION_DISRUPTION = "DisruptionTarget"  # Kubernetes' own: the failure is not the program's
CONDITION_TIME_LIMIT = f"{GROUP}/TimeLimitExceeded"
SAID_BY_POLICY = "SaidByPolicy"  # reason of the two before, until the operator says more
CONDITION_PRUNED = f"{GROUP}/Pruned"  # of a trial that was told to stop early
CONDITION_ADVICE = f"{GROUP}/Advice"  # what to change about who asks by itself

LEASE = "gpu-scheduler-leader"  # and the LimitRange that says whose term it is
LABEL_LEADER = f"{GROUP}/leader"  # of the replica that leads; the Service for reports selects it

# The agents' heartbeats: one Lease per node, in the operator's namespace.
AGENT_LEASE_PREFIX = "gpu-node-"
LABEL_COMPONENT = f"{GROUP}/component"
COMPONENT_AGENT = "agent"

# Pods of ours that request a device from its plugin while GPUJobs use it, docs/coexistence.md.
COMPONENT_HOLDER = "holder"
LABEL_HOLDS = f"{GROUP}/holds"  # the device's id


def _of_container(what: str) -> Callable[[int], str]:
    return lambda container: f"{GROUP}/c{container}-{what}"


# Annotations by the number of the container in its pod.
devices_annotation = _of_container("devices")
"""Comma-separated device ids (NVIDIA_VISIBLE_DEVICES)."""
memory_mib_annotation = _of_container("memory-mib")
"""Memory cap, MiB per device."""
memory_bytes_annotation = _of_container("memory-bytes")
"""Memory cap, bytes per device (for frameworks that want bytes)."""
context_mib_annotation = _of_container("context-mib")
"""What a CUDA context takes on its devices, MiB; absent where nobody knows."""


def files_volume(container: int) -> str:
    """Volume with the files of a GPU container; reserved in templates."""
    return f"gpu-scheduler-c{container}"


def hparam_annotation(parameter: str) -> str:
    """Value of one parameter of a trial, as its program gets it."""
    return f"{GROUP}/hparam.{parameter}"


def segment_name(job: str, segment: int) -> str:
    """Name of the Job that runs a segment of a sweep."""
    return f"{job}-s{segment}"


def results_name(job: str, segment: int) -> str:
    """Name of the ConfigMap with the results of a segment."""
    return f"{job}-results-{segment}"


@remembered(20_000, chars=512)  # asked for every device in use, each second
def holder_name(node: str, device: str) -> str:
    """The pod that holds a device for us: a device has at most one, whatever happens."""
    digest = hashlib.sha256(f"{node}\0{device}".encode()).hexdigest()
    return f"gpu-holder-{digest[:20]}"
