"""The rules that a play can be played by, by name."""

from collections.abc import Mapping
from math import inf

from gpu_scheduler.core.model.promises import FAIR, STRICT, Promises

RULES: Mapping[str, Promises] = {
    "fair": FAIR,
    "strict": STRICT,
    # Whoever loses least goes, as soon as anything is owed; only what a fair share takes has run
    # for five minutes.
    "at-once": Promises(0.0, 0.0, 300.0, 1.0),
    "never": Promises(inf, inf, inf, inf),
}
