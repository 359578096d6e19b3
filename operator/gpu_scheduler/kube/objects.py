"""The few fields of pods, nodes and jobs that the operator reads, as typed structs.

Decoded by msgspec; ``gc=False`` because they never form cycles. Fields that are absent take
defaults, others are never materialised. The planner's own classes are taints and the like.
"""

from typing import Any, Generic, TypeVar

import msgspec

from gpu_scheduler.core.model.cluster import Taint
from gpu_scheduler.core.model.request import Toleration
from gpu_scheduler.core.model.requirement import Requirement

T = TypeVar("T")


class _Struct(msgspec.Struct, rename="camel", gc=False, frozen=True):
    pass


class OwnerReference(_Struct, frozen=True):
    """metadata.ownerReferences[]."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


OF_THE_COLLECTOR = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers of the garbage collector, which are soon gone."""


class Meta(_Struct, frozen=True):
    """metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class _Object(_Struct, frozen=True):
    metadata: Meta = Meta()


class Gate(_Struct, frozen=True):
    """spec.schedulingGates[]."""

    name: str = ""


class ResourceRequirements(_Struct, frozen=True):
    """resources of a container: quantities as Kubernetes writes them."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class VolumeMount(_Struct, frozen=True):
    """volumeMounts[] of a container."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class FieldRef(_Struct, frozen=True):
    """fieldRef of a variable or of a file."""

    field_path: str = ""


class EnvSource(_Struct, frozen=True):
    """valueFrom of a variable; of other sources nothing is read."""

    field_ref: FieldRef | None = None


class EnvVar(_Struct, frozen=True):
    """env[] of a container."""

    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class Source(_Struct, frozen=True):
    """envFrom[] or volumeDevices[] of a container: that there is one, and where it goes."""

    device_path: str = ""


class Container(_Struct, frozen=True):
    """A container or init container (``restart_policy`` Always makes the latter a sidecar)."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[Source, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[Source, ...] = ()
    working_dir: str = ""
    termination_message_path: str = ""


class SelectorTerm(_Struct, frozen=True):
    """A node selector term."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(_Struct, frozen=True):
    """requiredDuringSchedulingIgnoredDuringExecution."""

    node_selector_terms: tuple[SelectorTerm, ...] = ()


class Required(_Struct, Generic[T], frozen=True):
    """What an affinity demands; what is preferred is not read."""

    required_during_scheduling_ignored_during_execution: T | None = None


class LabelSelector(_Struct, frozen=True):
    """A label selector; an empty one selects everything, an absent one nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class PodAffinityTerm(_Struct, frozen=True):
    """A required term of podAffinity or podAntiAffinity."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


PodAffinity = Required[tuple[PodAffinityTerm, ...]]


class Affinity(_Struct, frozen=True):
    """affinity."""

    node_affinity: Required[NodeSelector] | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpread(_Struct, frozen=True):
    """spec.topologySpreadConstraints[]."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class DownwardFile(_Struct, frozen=True):
    """downwardAPI.items[] of a volume."""

    path: str = ""
    field_ref: FieldRef | None = None


class DownwardAPI(_Struct, frozen=True):
    """downwardAPI of a volume."""

    items: tuple[DownwardFile, ...] = ()


class Volume(_Struct, frozen=True):
    """volumes[]; of other sources than these nothing is read."""

    name: str = ""
    downward_api: DownwardAPI | None = msgspec.field(name="downwardAPI", default=None)
    empty_dir: dict[str, Any] | None = None
    persistent_volume_claim: dict[str, Any] | None = None


class SchedulingGroup(_Struct, frozen=True):
    """spec.schedulingGroup of a pod."""

    pod_group_name: str = ""


class PodSpec(_Struct, frozen=True):
    """spec of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[Gate, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[TopologySpread, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: ResourceRequirements | None = None  # pod-level resources
    active_deadline_seconds: int | None = None
    restart_policy: str = ""
    volumes: tuple[Volume, ...] = ()
    scheduling_group: SchedulingGroup | None = None

    @property
    def required_nodes(self) -> NodeSelector | None:
        """What its affinity demands of a node; None: nothing."""
        affinity = self.affinity.node_affinity if self.affinity else None
        return affinity.required_during_scheduling_ignored_during_execution if affinity else None


class Condition(_Struct, frozen=True):
    """status.conditions[]."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None  # null on the wire when nobody set it


class Terminated(_Struct, frozen=True):
    """state.terminated of a container."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class ContainerStateWaiting(_Struct, frozen=True):
    """state.waiting of a container."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(_Struct, frozen=True):
    """state.running of a container: that it does."""


class ContainerState(_Struct, frozen=True):
    """state of a container."""

    terminated: Terminated | None = None
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None


class ContainerStatus(_Struct, frozen=True):
    """status.containerStatuses[]; decoded for the few who read it, see ``PodStatus``."""

    name: str = ""
    image: str = ""
    state: ContainerState = ContainerState()
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerResources(_Struct, frozen=True):
    """Of status.containerStatuses[]: what its node gave a container."""

    name: str = ""
    allocated_resources: dict[str, str] = {}
    resources: ResourceRequirements | None = None


class ClaimedResource(_Struct, frozen=True):
    """status.extendedResourceClaimStatus.requestMappings[]: what a claim gives a container."""

    resource_name: str = ""


class ExtendedResourceClaimStatus(_Struct, frozen=True):
    """status.extendedResourceClaimStatus: the claim that kube-scheduler made for a pod."""

    request_mappings: tuple[ClaimedResource, ...] = ()


class PodStatus(_Struct, frozen=True):
    """status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    allocated_resources: dict[str, str] = {}  # pod-level
    resources: ResourceRequirements | None = None  # the same
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    container_statuses: tuple[msgspec.Raw, ...] = ()  # ContainerStatus
    init_container_statuses: tuple[msgspec.Raw, ...] = ()  # the same
    ephemeral_container_statuses: tuple[msgspec.Raw, ...] = ()  # the same


class Pod(_Object, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(_Struct, frozen=True):
    """spec of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(_Struct, frozen=True):
    """status of a node."""

    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(_Object, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class JobSpec(_Struct, frozen=True):
    """spec of a batch/v1 Job."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False


class JobStatus(_Struct, frozen=True):
    """status of a batch/v1 Job."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    failed_indexes: str = ""
    completed_indexes: str = ""
    conditions: tuple[Condition, ...] = ()


class Job(_Object, frozen=True):
    """A batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class DeviceClassSpec(_Struct, frozen=True):
    """spec of a DeviceClass."""

    extended_resource_name: str = ""


class DeviceClass(_Object, frozen=True):
    """A resource.k8s.io/v1 DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class GangPolicy(_Struct, frozen=True):
    """schedulingPolicy.gang of a PodGroup."""

    min_count: int = 1


class SchedulingPolicy(_Struct, frozen=True):
    """schedulingPolicy of a PodGroup; without ``gang`` its pods start one by one."""

    gang: GangPolicy | None = None


class PodGroupSpec(_Struct, frozen=True):
    """spec of a PodGroup."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(_Object, frozen=True):
    """A scheduling.k8s.io PodGroup."""

    spec: PodGroupSpec = PodGroupSpec()


class ResourceQuota(_Object, frozen=True):
    """A ResourceQuota: that it changed is all that counts."""


class LeaseSpec(_Struct, frozen=True):
    """spec of a Lease."""

    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    renew_time: str = ""


class Lease(_Object, frozen=True):
    """A coordination.k8s.io/v1 Lease."""

    spec: LeaseSpec = LeaseSpec()


class StatusCause(_Struct, frozen=True):
    """details.causes[] of a Status: which field, and why."""

    message: str = ""
    field: str = ""


class StatusDetails(_Struct, frozen=True):
    """details of a Status."""

    name: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(_Struct, frozen=True):
    """The body of every refusal and the object of an ERROR event in a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class Namespace(_Object, frozen=True):
    """A namespace: its labels, and that it is being deleted, are all that is looked at."""


class ListMeta(_Struct, frozen=True):
    """metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawObject(_Object, frozen=True):
    """An object whose body stays undecoded JSON (custom resources)."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
