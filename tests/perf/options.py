"""What the commands ``tests.perf.replay`` and ``tests.perf.sharing`` ask of their options alike."""

from math import isfinite

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def finite(**values: float | None) -> None:
    """Refuse NaN, which is in no range and out of none.

    Raises:
        ValueError: a value is no number.
    """
    for name, value in values.items():
        if value is not None and not isfinite(value):
            raise ValueError(f"--{name.replace('_', '-')} {value}: a number")
