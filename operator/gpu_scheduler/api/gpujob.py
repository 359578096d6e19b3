"""GPUJob: pods that each need GPUs, or a part of one.

Exactly one way to say what runs (``image`` or ``template``) and exactly one way to say how much
GPU (``gpu``, ``gpuMemory``, ``containers`` or ``roles``). The operator writes only ``status``.
Read by rendering, the state and the status writer; the CRD is generated from these classes, so
the descriptions below are what ``kubectl explain`` shows.
"""

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from gpu_scheduler.api.advice import MOST as MOST_ADVICE
from gpu_scheduler.api.advice import Advice
from gpu_scheduler.api.checkpoint import Checkpoint
from gpu_scheduler.api.condition import Conditions, Sentence
from gpu_scheduler.api.container import (
    DeviceCount,
    EnvironmentVariable,
    GPUCount,
    MemoryAmount,
    Models,
    Named,
    PodTemplate,
    PullPolicy,
    Resources,
)
from gpu_scheduler.api.gpuclass import ShapeName
from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.api.model import ApiModel, ComputeCapability, rules, rules_of
from gpu_scheduler.api.roles import Framework, Role, TopologySpec
from gpu_scheduler.api.rules import GPU_CONTAINER, GPU_JOB_FIELDS, GPU_JOB_SPEC
from gpu_scheduler.api.states import described
from gpu_scheduler.api.sweep import SweepSpec
from gpu_scheduler.api.sweep_status import SweepStatus

MAIN_CONTAINER = "main"  # name of the one container of the short form
MAX_PODS = 100_000  # per job: the limit of an Indexed Job with retries per index


class JobType(StrEnum):
    """What a job is for; decides its order and whether it may be preempted."""

    TRAINING = "training"
    INTERACTIVE = "interactive"


class Isolation(StrEnum):
    """What keeps a container inside its memory cap."""

    INTERPOSER = "interposer"
    FRAMEWORK = "framework"


class Phase(StrEnum):
    """Where a job is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"


FINISHED = frozenset({Phase.SUCCEEDED, Phase.FAILED})


class GPUContainer(ApiModel):
    """What one container of the template gets."""

    model_config = ConfigDict(json_schema_extra=rules(*GPU_CONTAINER))

    name: str = Field(
        min_length=1,
        max_length=63,
        description="Name of a container of the template, or of a sidecar of it: an init container "
        "with restartPolicy Always.",
    )
    gpu: GPUCount | None = Field(None, description="Share of one GPU (0.5), or whole GPUs (2).")
    gpu_memory: MemoryAmount | None = Field(
        None, description="Device memory on one GPU instead of gpu, for example 20Gi."
    )
    gpu_devices: DeviceCount | None = Field(
        None, description="That share or memory on each of this many GPUs."
    )


class GPUJobSpec(ApiModel):
    """What is wanted."""

    model_config = ConfigDict(json_schema_extra=rules_of(GPU_JOB_SPEC, GPU_JOB_FIELDS))

    image: str | None = Field(
        None, min_length=1, max_length=1024, description="Image of the one container `main`."
    )
    image_pull_policy: PullPolicy | None = Field(
        None, description="When to pull the image: Always, IfNotPresent or Never."
    )
    command: list[str] | None = Field(
        None, max_length=256, description="Replaces the image's entrypoint."
    )
    args: list[str] | None = Field(None, max_length=1024, description="Arguments.")
    env: list[EnvironmentVariable] | None = Field(
        None, max_length=512, description="Environment variables, as in a pod."
    )
    working_dir: str | None = Field(None, max_length=4096, description="Working directory.")
    resources: Resources | None = Field(None, description="CPU and memory, as in a pod.")
    template: PodTemplate | None = Field(
        None,
        description="A whole pod template, instead of image; GPUs are not asked for inside it.",
    )

    gpu: GPUCount | None = Field(
        None,
        description="GPUs of each pod: a share of one GPU (0 < gpu < 1, at most three decimals, "
        "for example 0.5), which also caps the device memory to that share, or a whole number of "
        "GPUs (1, 2 …). In a template with several containers the first one gets it.",
    )
    gpu_memory: MemoryAmount | None = Field(
        None,
        description="Device memory on one GPU, for example 20Gi, instead of gpu: takes the share "
        "of the GPU that holds it.",
    )
    containers: Named[GPUContainer] | None = Field(
        None,
        description="GPUs container by container, instead of gpu and gpuMemory; containers of "
        "the template that are not listed get no GPU.",
    )
    gpu_devices: DeviceCount | None = Field(
        None,
        description="With a share or gpuMemory: that much on each of this many different GPUs of "
        "one node. Default 1.",
    )
    gpu_models: Models | None = Field(
        None,
        description="Any of these GPU models, such as A100: whole words of the product name, upper "
        "or lower case, or the name of a GPUClass. Absent: any model.",
    )
    shape: ShapeName | None = Field(
        None,
        description="A name that a GPUClass gives to a number of its GPUs, instead of gpu and "
        "gpuModels (kubectl get gpuclasses).",
    )
    min_compute_capability: ComputeCapability | None = Field(
        None, description='Lowest CUDA compute capability, for example "7.0" (quoted).'
    )

    roles: Named[Role] | None = Field(
        None,
        description="Pods of several kinds, instead of gpu: each role says how many pods it has "
        "and what GPUs they get; what it does not say is as the job says.",
    )
    gang: bool | None = Field(
        None,
        description="true: all pods start together or none does. Default: true with roles of more "
        "than one pod in all, else false.",
    )
    distinct_gpus: bool | None = Field(
        None,
        description="Of a gang: no two pods share a GPU, as NCCL demands. Default true.",
    )
    topology: TopologySpec | None = Field(
        None, description="Of a gang: all pods in one zone, rack or other domain of nodes."
    )
    framework: Framework | None = Field(
        None,
        description="torch: MASTER_ADDR, RANK, PET_NNODES … are set; tensorflow: TF_CONFIG. Needs "
        "roles or gang: true.",
    )

    type: JobType = Field(
        JobType.TRAINING,
        description="training, or interactive (goes first, is not preempted inside the quota).",
    )
    priority: int = Field(
        50, ge=0, le=100, description="Higher goes first inside the project; 0 to 100."
    )
    parallelism: int = Field(1, ge=1, le=MAX_PODS, description="Pods that run at once, at most.")
    completions: int | None = Field(
        None,
        ge=1,
        le=MAX_PODS,
        description="Pods in all, each with its own GPUJOB_INDEX. Default: parallelism.",
    )
    retries: int = Field(
        3,
        ge=0,
        le=1000,
        description="How often each index may fail and start again; preemption and eviction do "
        "not count.",
    )
    time_limit_seconds: int | None = Field(
        None, ge=1, le=2**31 - 1, description="A pod that runs longer is stopped and has failed."
    )
    ttl_seconds_after_finished: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        description="The job is deleted this long after its end. Absent: it stays.",
    )
    suspend: bool = Field(False, description="true stops the pods and gives the GPUs back.")
    isolation: Isolation | None = Field(
        None,
        description="What keeps containers inside their memory cap: interposer (a library loaded "
        "into every process; the default, unless the installation says otherwise) or framework "
        "(nothing is loaded; the framework is only told). Where the driver enforces caps itself, "
        "it does so in either case.",
    )

    checkpoint: Checkpoint | None = Field(
        None,
        description="A folder for each index that outlives its pods: a retry, and a pod that was "
        "evicted, find there what the one before has saved.",
    )

    sweep: SweepSpec | None = Field(
        None,
        description="A search over parameters: each pod is a trial with parameters of its own. "
        "completions is the number of trials (default: all of a grid or list) and can be raised "
        "later; parallelism is how many run at once.",
    )

    @property
    def total_pods(self) -> int:
        """Pods of all roles; without roles completions, or parallelism where that is absent."""
        if self.roles is not None:
            return sum(role.replicas for role in self.roles)
        if self.sweep is not None:
            return self.sweep.total(self.completions)
        return self.parallelism if self.completions is None else self.completions

    @property
    def pods_at_once(self) -> int:
        """Pods that run at the same time, at most."""
        if self.roles is not None:
            return self.total_pods
        return min(self.parallelism, self.total_pods)


class PodCounts(ApiModel):
    """Indexes of the job by state."""

    pending: int = Field(default=0, description="Indexes that wait for a GPU or to start.")
    running: int = Field(default=0, description="Indexes whose pod runs.")
    succeeded: int = Field(default=0, description="Indexes that are done.")
    failed: int = Field(default=0, description="Indexes that used up their retries.")


class PodPlacement(ApiModel):
    """Where one pod holds GPUs."""

    pod: str = Field(description="Name of the pod.")
    node: str = Field(description="Its node.")
    devices: list[str] = Field(description="Its GPUs.")
    memory_mib: int = Field(description="Memory cap per GPU, MiB; of several containers the sum.")
    isolation: str | None = Field(
        None,
        description="What enforces the caps of its containers now, of several the weakest: kernel, "
        "interposer, framework, none, unprotected; absent where no agent reports.",
    )
    compute_percent: int | None = Field(
        None,
        description="Share of time, in tens of percent, in which its containers had kernels run on "
        "its GPUs: the mean of five minutes, of several containers the sum, at most 100. Measured, "
        "not enforced: other pods on the same GPU take turns with it. Absent where no agent "
        "reports, in the first minute, and where the driver cannot tell.",
    )


class HeldRoom(ApiModel):
    """GPUs that are held for a pod which has no place yet."""

    node: str = Field(description="Node that has them.")
    device: str = Field(description="GPU.")
    milli_gpu: int = Field(description="Thousandths of it.")
    held_as: Literal["nominated", "reserved"] = Field(
        description="nominated: for pods that their Job is to make. reserved: for pods that start "
        "as soon as all of their room is free."
    )


class GPUJobStatus(ApiModel):
    """What is."""

    observed_generation: int | None = Field(None, description="metadata.generation judged here.")
    phase: Phase = Field(Phase.PENDING, description="Where the job is in its life.")
    reason: str = Field("", description=described())
    message: Sentence = Field("", description="The same as a sentence with numbers.")
    first_failure: Sentence | None = Field(
        None,
        description="The first pod of it that failed: when, which index and container, how it "
        "ended and what it said last.",
    )
    preempted_by: str | None = Field(
        None,
        description="namespace/name of the GPUJob for which pods of this one had to go; until "
        "they run again.",
    )
    evictions: int | None = Field(
        None, description="How often a pod of it was evicted for others; absent: never."
    )
    lost_gpu_seconds: int | None = Field(
        None,
        description="GPU time that was lost with those, counted when the pods had gone: what they "
        "had done since they started, or since their last checkpoint "
        "(gpu-scheduler.io/checkpointed-at). 0 = nothing.",
    )
    queue_position: int | None = Field(
        None, description="1 = next of its project to start; absent when nothing waits."
    )
    pods: PodCounts = Field(default_factory=PodCounts, description="Pods by state.")
    allocated_gpu: str = Field("0", description="GPUs held now.")
    placements: list[PodPlacement] = Field(
        default_factory=list, max_length=8, description="Where pods run: the newest eight."
    )
    held_room: list[HeldRoom] | None = Field(
        None,
        max_length=16,
        description="GPUs that are held for pods that have no place yet, or do not exist: the "
        "first sixteen; written where that lasts for seconds.",
    )
    sweep: SweepStatus | None = Field(None, description="Of a sweep: what came of its trials.")
    advice: list[Advice] | None = Field(
        None,
        max_length=MOST_ADVICE,
        description="What to change about it, by what its GPUs were seen doing; the first matters "
        "most. See docs/advice.md.",
    )
    usage: JobUsage | None = Field(
        None,
        description="What it did with its GPUs; once it has ended, and where agents say so.",
    )
    conditions: Conditions = Field(
        default_factory=list,
        description="Accepted, Placed, Complete, Failed; with agents Protected (memory caps are "
        "enforced and kept) and DevicesHealthy; CannotStart while a pod with a place cannot "
        "start; InDoubt while nobody gives way to it; SetAside when the planner could not work "
        "with it.",
    )
    project: str | None = Field(None, description="The GPUProject that is charged.")
    gpu: str | None = Field(
        None, description="GPUs, or GPU memory, held / asked for by the pods at once."
    )
    pod_summary: str | None = Field(None, description="Pods running / succeeded / in all.")
    node: str | None = Field(None, description="Where pods run: a node, or a node and +N more.")
