"""What a what-if's process is told, beside a dump: the question, and what its reader may see."""

import msgspec

from gpu_scheduler.dashboard.views import WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible


class WhatIfTask(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of its input; the rest is the dump.

    Attributes:
        question: what was asked.
        visible: what its reader may see.
        owners: projects by namespace.
        classes: specs of GPUClasses by name, as far as a GPUJob is read by them.
    """

    question: WhatIfQuestion
    visible: Visible
    owners: dict[str, str]
    classes: dict[str, dict[str, object]] = {}
