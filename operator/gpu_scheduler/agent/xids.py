"""Which XID errors mean that a device must take no new work.

The numbers are those for which NVIDIA's XID catalogue asks for more than restarting the program:
a reset, a reboot or a look at the hardware. All others are the work of programs (13, 31, 43, 45,
68 …) or notes, and a tenant must not be able to take a shared device out of use with them.

Source: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from collections.abc import Collection

FATAL: dict[int, str] = {
    46: "the GPU stopped processing",
    48: "double-bit ECC error",
    54: "auxiliary power is not connected",
    62: "the internal micro-controller halted",
    64: "a bad memory row could not be retired",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    109: "a context switch timed out",
    110: "security fault",
    119: "the GPU's system processor does not answer",
    120: "the GPU's system processor failed",
    136: "a link could not be trained",
    140: "unrecovered ECC error",
    142: "a video encoder failed",
    143: "the GPU could not be initialised",
    151: "key rotation failed",
    155: "NVLink software error",
    156: "a resource was retired",
    158: "the GPU timed out",
}


def fatal_message(code: int, ignored: Collection[int] = ()) -> str | None:
    """Why a device with this XID takes no new pods; None when the XID is no reason.

    Args:
        code: The XID.
        ignored: XIDs that the cluster's owner does not want to count.
    """
    text = FATAL.get(code)
    return f"XID {code}: {text}" if text is not None and code not in ignored else None
