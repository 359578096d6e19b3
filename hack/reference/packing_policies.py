"""Files that list the packing policies of ``core/packing/policy.py``, as they should be.

These are the chart's values.schema.json and values.yaml, and docs/packing.md.
"""

import json
import textwrap
from pathlib import Path

from gpu_scheduler.core.packing.policy import OFFERED, Packing
from reference.markdown import code, table

_ROOT = Path(__file__).parents[2]
SCHEMA = _ROOT / "charts" / "gpu-scheduler" / "values.schema.json"
VALUES = SCHEMA.with_name("values.yaml")
PAGE = _ROOT / "docs" / "packing.md"
_COMMENT = "  # -- How nodes and GPUs are chosen: "


def schema() -> str:
    """With the policies that there are."""
    return _with(SCHEMA, '"packing": {"enum": ', "}", json.dumps(OFFERED))


def values() -> str:
    """With what each does, in the comment above ``packing``."""
    *others, last = [f"{name} ({Packing(name).policy.does})" for name in OFFERED]
    text = f"{_COMMENT}{', '.join(others)} or {last}."
    made = textwrap.fill(text, 100, subsequent_indent="  # ")
    return _with(VALUES, _COMMENT, "\n  packing:", made.removeprefix(_COMMENT))


def page() -> str:
    """With the table."""
    rows = [
        (code(name) + " (default)" * (name == OFFERED[0]), policy.does, policy.take_it_when)
        for name in OFFERED
        for policy in [Packing(name).policy]
    ]
    made = table(("value", "what it does", "take it when"), rows)
    return _with(PAGE, "| value |", "\n\n", made.removeprefix("| value |"))


def _with(path: Path, start: str, end: str, made: str) -> str:
    """A file, with what stands from ``start`` to the first ``end`` behind it replaced."""
    before, found, rest = path.read_text(encoding="utf-8").partition(start)
    assert found, f"{path} has no {start!r}"
    return f"{before}{start}{made}{end}{rest.partition(end)[2]}"
