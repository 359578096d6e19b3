"""What the process of what-ifs is told, beside a dump: a question, and what its reader may see."""

import msgspec

from gpu_scheduler.dashboard.views import WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible

CPU_SECONDS = 10  # of a question, the first with the dump


class WhatIfTask(msgspec.Struct, frozen=True, kw_only=True):
    """A line of its input.

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
