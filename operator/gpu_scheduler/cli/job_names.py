"""Names on the command line: whether something in a cluster can be called so.

A name becomes a part of a path of the API server, where an empty one would mean all objects: so
every command checks before it asks.
"""

import re

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KINDS = ("gpujob", "gpujobs", "gpujob.gpu-scheduler.io", "gpujobs.gpu-scheduler.io", "gj")


def checked(name: str, what: str = "a name") -> str:
    """The name itself.

    Raises:
        ValueError: nothing in a cluster can be called so.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be {what}: lower case letters, digits, '-' and '.', and a letter or "
            "digit at both ends"
        )
    return name


def checked_word(word: str) -> str:
    """NAME or KIND/NAME, as it was.

    Raises:
        ValueError: it is neither.
    """
    kind, slash, name = word.rpartition("/")
    if slash and not re.fullmatch(r"[A-Za-z][-A-Za-z0-9.]*", kind):
        raise ValueError(f"{word!r}: NAME, or KIND/NAME such as deploy/server")
    checked(name)
    return word


def job_name(word: str) -> tuple[str, str]:
    """The name of a GPUJob, and an empty text; or the name of something else, and its kind."""
    kind, _, name = checked_word(word).rpartition("/")
    return name, "" if not kind or kind.lower() in _KINDS else kind.lower()
