"""The keys with which a pod asks for a share by itself: our own, and those of other schedulers.

Other schedulers' keys count in namespaces whose label ``names.COMPAT`` says so; elsewhere they are
theirs. Each key has one meaning (``UNITS``). The policies of the chart have the same tables
(``_cel_shares.tpl``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from gpu_scheduler.api import names


class Compat(StrEnum):
    """Whose keys a namespace's pods may use beside ours: the values of its label."""

    HAMI = "hami"
    KAI = "kai"  # and NVIDIA Run:ai's
    NVIDIA = "nvidia"  # the device plugin's


class Unit(StrEnum):
    """What the word of a key says."""

    SHARE = auto()  # of one GPU, or whole GPUs
    MEMORY = auto()  # of a device, as a quantity
    MILLI = auto()  # thousandths of a GPU, or whole GPUs
    PERCENT = auto()  # of a device
    MIB = auto()  # of a device
    DEVICES = auto()  # on how many devices a share or memory is wanted
    GPUS = auto()  # whole GPUs, or as DEVICES beside memory
    CORES = auto()  # per cent of a device's time: taken, and not enforced


@dataclass(frozen=True, slots=True)
class PodKeys:
    """Keys of a pod, which ask for one of its containers.

    Attributes:
        container: annotation that names it; without it the first one.
        amounts: annotations, any of which makes the pod ask.
        devices: annotation beside them.
        label: that of the amounts which may be a label as well; empty: none.
    """

    container: str
    amounts: tuple[str, ...]
    devices: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How pods ask.

    Attributes:
        limits: keys in the limits of containers.
        pod: keys of the pod; None: there are none.
        of_container: annotations with a container's name in the key, which ask for that one: the
            first that is there counts.
        schedulers: names of those that would have placed the pod.
    """

    limits: tuple[str, ...]
    pod: PodKeys | None = None
    of_container: tuple[str, ...] = ()
    schedulers: frozenset[str] = frozenset()


GPUS = "nvidia.com/gpu"
HAMI_MEMORY, HAMI_PERCENT = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
HAMI_CORES = "nvidia.com/gpucores"
KAI_SHARE, KAI_MEMORY = "gpu-fraction", "gpu-memory"
KAI_DEVICES, KAI_CONTAINER = (
    "gpu-fraction-num-devices",
    "gpu-fraction-container-name",
)  # Of a container, by its name: an amount of memory. Where there is no request the limit is one.
KAI_REQUEST = "nvidia.com/container.{}.gpu-memory.request"
KAI_LIMIT = "nvidia.com/container.{}.gpu-memory.limit"
OF_CONTAINER = re.compile(r"nvidia\.com/container\.([a-z0-9-]+)\.gpu-memory\.(request|limit)")

OWN = Form(
    (names.RESOURCE_MILLI, names.RESOURCE_MIB),
    PodKeys(
        names.ASK_CONTAINER,
        (names.ASK_GPU, names.ASK_MEMORY),
        names.ASK_DEVICES,
        label=names.ASK_GPU,
    ),
)
PEERS: Mapping[Compat, Form] = {
    Compat.HAMI: Form(
        (GPUS, HAMI_MEMORY, HAMI_PERCENT, HAMI_CORES), schedulers=frozenset({"hami-scheduler"})
    ),
    Compat.KAI: Form(
        (GPUS,),
        PodKeys(KAI_CONTAINER, (KAI_SHARE, KAI_MEMORY), KAI_DEVICES),
        (KAI_REQUEST, KAI_LIMIT),
        frozenset({"kai-scheduler", "runai-scheduler"}),
    ),
    Compat.NVIDIA: Form((GPUS,)),
}
UNITS: Mapping[str, Unit] = {
    names.ASK_GPU: Unit.SHARE,
    KAI_SHARE: Unit.SHARE,
    names.ASK_MEMORY: Unit.MEMORY,
    names.RESOURCE_MILLI: Unit.MILLI,
    names.RESOURCE_MIB: Unit.MIB,
    HAMI_MEMORY: Unit.MIB,
    KAI_MEMORY: Unit.MIB,
    HAMI_PERCENT: Unit.PERCENT,
    names.ASK_DEVICES: Unit.DEVICES,
    KAI_DEVICES: Unit.DEVICES,
    GPUS: Unit.GPUS,
    HAMI_CORES: Unit.CORES,
}
LIMITS = frozenset(key for form in (OWN, *PEERS.values()) for key in form.limits)
PEER_LIMITS = LIMITS - {*OWN.limits}

# Annotations with which pods choose devices at HAMi: they are not read, and the pod is told so.
NOT_READ = (
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
)
# And amounts above what is asked, at KAI and Run:ai.
LIMITS_NOT_READ = ("gpu-fraction.limit", "gpu-memory.limit")

# Gangs: the label that names one, and the annotation with its size. Ours says that there is one;
# another scheduler's is read where both are there, in every namespace.
GANGS = (
    (names.LABEL_GANG, names.GANG_SIZE),
    ("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"),
    ("leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/size"),
)

# Annotations that say more of what a pod asks for than its amounts do.
FURTHER = (
    names.ASK_MODELS,
    names.ASK_TYPE,
    names.ASK_PRIORITY,
    names.ASK_ISOLATION,
    names.ASK_TIME_LIMIT,
    names.DISTINCT_GPUS,
    *(size for _, size in GANGS),
)


def unit_of(key: str) -> Unit | None:
    """What the word of a key says; None: it is no key of a pod that asks."""
    return Unit.MEMORY if OF_CONTAINER.fullmatch(key) else UNITS.get(key)


def not_read(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Keys of other schedulers that nothing is made of, though they are beside what is read."""
    limits = (
        key
        for key in annotations
        if (found := OF_CONTAINER.fullmatch(key))
        and found[2] == "limit"
        and KAI_REQUEST.format(found[1]) in annotations
    )
    fixed = (key for key in (*NOT_READ, *LIMITS_NOT_READ) if key in annotations)
    return (*fixed, *sorted(limits))


def forms(compat: Compat | None) -> tuple[Form, ...]:
    """How pods ask in a namespace."""
    return (OWN,) if compat is None else (OWN, PEERS[compat])
