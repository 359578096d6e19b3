r"""Names of parameters in texts: ``${hparam.lr}``, Katib's ``${trialParameters.lr}``, HPARAM_LR.

``$${hparam.lr}`` stands for the text itself, as a doubled dollar does everywhere in a pod.
The rules of a sweep and rendering agree here on what a reference is.
"""

import re
from collections.abc import Callable, Iterator

PREFIX = "HPARAM_"

# No name is as long as what may stand in the braces: a text without an end to them takes no longer.
_REFERENCE = re.compile(r"\$\$|\$\{(?:hparam|trialParameters)\.([^}]{0,200})\}")


def env_name(parameter: str) -> str:
    """The variable that holds a parameter: upper case, what is neither letter nor digit is _."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", parameter.upper())


def references(text: str) -> Iterator[str]:
    """Names of the parameters that a text refers to."""
    return (match[1] for match in _REFERENCE.finditer(text) if match[1] is not None)


def replaced(text: str, write: Callable[[str], str]) -> str:
    """The text with ``write(name)`` in place of each reference."""
    return _REFERENCE.sub(lambda m: m[0] if m[1] is None else write(m[1]), text)
