"""What a what-if's process is told, beside a dump: the question, and what its reader may see."""

import msgspec

from gpu_scheduler.dashboard.views import WhatIf


class WhatIfTask(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of its input; the rest is the dump.

    Attributes:
        question: what was asked.
        namespaces: whose work may be named; None: that of all.
        inventory: whether nodes and projects may be seen.
        owners: projects by namespace.
        classes: specs of GPUClasses by name, as far as a GPUJob is read by them.
    """

    question: WhatIf
    namespaces: tuple[str, ...] | None
    inventory: bool
    owners: dict[str, str]
    classes: dict[str, dict[str, object]] = {}

    def sees(self, namespace: str) -> bool:
        """Whether work of it may be named."""
        return self.namespaces is None or namespace in self.namespaces
