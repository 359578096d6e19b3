"""Exceptions that nobody foresaw: each concerns its object, is logged, and is counted.

A loop that meets one says so here and goes on with the next object; nothing is swallowed without
it. Counts are of the process, like the log; a metric shows them (``web.collector``): above 0
there is a defect of ours, and the chart's alert fires. Called in ``except`` blocks of every loop of
operator and agent.
"""

import logging
from collections import Counter

log = logging.getLogger(__name__)

counts: Counter[str] = Counter()
"""How often, by loop."""


def unexpected(loop: str, about: object, error: BaseException | None = None) -> None:
    """Note the exception that is being handled.

    Args:
        loop: which loop goes on all the same: one word, a label of the metric.
        about: the object that it concerns, as people know it (namespace/name).
        error: the exception; None: the one being handled.
    """
    counts[loop] += 1
    log.error("%s: %s: unexpected", loop, about, exc_info=error if error is not None else True)
