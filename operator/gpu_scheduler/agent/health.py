"""Whether a device may take new pods: a small state machine per device.

A fatal XID sticks until the device was unreadable and came back, or the agent started anew: both
are what a reset looks like from here (a device cannot be reset while the agent holds it). What the
driver itself remembers (ECC, failed row remapping, a recovery it asks for) counts as long as it
says so.

Fatal are the XIDs for which NVIDIA's catalogue asks for more than restarting the program: a reset,
a reboot or a look at the hardware. All others are the work of programs (13, 31, 43, 45, 68 …) or
notes, and a tenant must not be able to take a shared device out of use with them.

Source: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from collections.abc import Collection

from gpu_scheduler.agent.driver import Vitals, Xid

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

# nvmlDeviceGpuRecoveryAction_t; 3 (drain peer-to-peer) and 5 (IMEX domain) are not about memory.
_RECOVERY = {
    1: "a GPU reset",
    2: "a reboot of the node",
    4: "draining and a reset",
    6: "a bus reset",
    7: "a reboot of the system",
}


def fatal_message(code: int, ignored: Collection[int] = ()) -> str | None:
    """Why a device with this XID takes no new pods; None when the XID is no reason.

    Args:
        code: The XID.
        ignored: XIDs that the cluster's owner does not want to count.
    """
    text = FATAL.get(code)
    return f"XID {code}: {text}" if text is not None and code not in ignored else None


def vitals_message(vitals: Vitals) -> str | None:
    """What the driver holds against the device."""
    if vitals.uncorrected_ecc:
        return f"{vitals.uncorrected_ecc} uncorrectable ECC errors since the last reset"
    if vitals.remap_failed:
        return "a bad memory row could not be remapped"
    wanted = _RECOVERY.get(vitals.recovery_action or 0)
    return f"the driver asks for {wanted}" if wanted else None


class Health:
    """Remembers fatal XIDs per device."""

    def __init__(self, ignored_xids: Collection[int] = ()) -> None:
        self._ignored = frozenset(ignored_xids)
        self._xids: dict[str, str] = {}
        self._unreadable: set[str] = set()

    def xid(self, event: Xid) -> str | None:
        """Take an event in; the message if it is fatal."""
        message = fatal_message(event.code, self._ignored)
        if message is not None and event.uuid:
            # The first is the cause, later ones are its consequences.
            self._xids.setdefault(event.uuid, message)
        return message

    def unreadable(self, uuid: str, error: str) -> str:
        """The device did not answer: the message."""
        self._unreadable.add(uuid)
        known = self._xids.get(uuid)
        return f"{known}; {error}" if known else f"NVML: {error}"

    def message(self, uuid: str, vitals: Vitals) -> str | None:
        """The device answered: why it is unhealthy all the same, None when it is well."""
        if uuid in self._unreadable:
            self._unreadable.discard(uuid)
            self._xids.pop(uuid, None)
        return self._xids.get(uuid) or vitals_message(vitals)
