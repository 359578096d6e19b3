"""What the operator tells an agent of its node: one annotation on the agent's own pod, as JSON.

The kubelet hands it to the agent as a file, so the agent reads nothing of the API server: a right
to read, or to patch, could not be confined to one node (docs/adr/0035). No environment, no token,
no pod of another node is in it. Fields that a reader does not know are skipped; what it cannot do
without has another version. Written by ``runtime.binding.node_orders``, read by the agent.
"""

import msgspec

VERSION = 1
MOST_BYTES = 160 * 1024  # the API server takes 256 KiB of annotations on a pod, all together


class BadOrdersError(ValueError):
    """The text is not what an operator of this version writes."""


class _Struct(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    pass


class OrderedContainer(_Struct, frozen=True):
    """A container with GPUs.

    Attributes:
        index: Its number in the pod.
        name: Its name.
        id: The runtime's id, empty until it was created.
        caps_mib: Its memory cap on each device, as the allocation names it (UUID or number).
        promised: libgpucap is mounted into it.
    """

    index: int
    name: str
    caps_mib: dict[str, int]
    id: str = ""
    promised: bool = False


class OrderedPod(_Struct, frozen=True):
    """A pod with GPUs that we gave it.

    Attributes:
        uid: Its UID.
        namespace: Its namespace.
        name: Its name.
        containers: Those that hold GPUs.
        job: Its GPUJob, or who made a pod that asks by itself.
        project: That is charged.
        kill: Its project kills what is above a cap.
        ephemeral: Names of its ephemeral containers by the runtime's id; none has GPUs or a cap.
        work: By which its use is summed up: the UID of its GPUJob, with #role where it has roles,
            or namespace/kind name.
    """

    uid: str
    namespace: str
    name: str
    containers: tuple[OrderedContainer, ...]
    job: str = ""
    project: str = ""
    kill: bool = False
    ephemeral: dict[str, str] = {}
    work: str = ""


class Neighbour(_Struct, frozen=True):
    """Any other pod.

    Attributes:
        uid: Its UID.
        namespace: Its namespace.
        name: Its name.
        tenant: Its namespace is a project's, where a command's name proves nothing.
        whole_gpus: The device plugin gives it GPUs.
    """

    uid: str
    namespace: str
    name: str
    tenant: bool = False
    whole_gpus: bool = False


class GPUNodeAt(_Struct, frozen=True):
    """The node's GPUNode as the operator sees it."""

    uid: str
    version: str


class Orders(_Struct, frozen=True):
    """All that an agent is told.

    Attributes:
        node_uid: UID of the Node, which owns GPUNode and Lease.
        gpu_node: None while there is none.
        lease_version: resourceVersion of the agent's Lease; empty while there is none.
        pods: Pods that hold GPUs of ours and have not ended.
        others: Other pods of the node that have not ended.
        usage_digest: SHA-256 of the key with which the leader asks for use, in hex; empty: nobody
            may ask.
    """

    node_uid: str
    v: int = msgspec.field(default=0)
    gpu_node: GPUNodeAt | None = None
    lease_version: str = ""
    pods: tuple[OrderedPod, ...] = ()
    others: tuple[Neighbour, ...] = ()
    usage_digest: str = ""


_DECODER = msgspec.json.Decoder(Orders)


def dumps(orders: Orders) -> str:
    """The annotation. Of too many other pods the names are left out: processes tell their UIDs."""
    text = msgspec.json.encode(orders)
    if len(text) > MOST_BYTES:
        text = msgspec.json.encode(msgspec.structs.replace(orders, others=()))
    return text.decode()


def parse(text: str | bytes) -> Orders:
    """What an annotation says.

    Raises:
        BadOrdersError: not JSON, another version, or a field of the wrong type.
    """
    try:
        orders = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadOrdersError(f"orders cannot be read: {error}") from None
    if orders.v != VERSION:
        raise BadOrdersError(f"orders of version {orders.v}, expected {VERSION}")
    return orders
