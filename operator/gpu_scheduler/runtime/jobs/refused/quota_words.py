"""What a ResourceQuota says to an object, in words of the way out. Pure.

The API server writes ``exceeded quota: NAME, requested: …, used: …, limited: …``, each with the
resources that there is no room for.
"""

from gpu_scheduler.core.model.quantity import parse
from gpu_scheduler.kube import errors

_EXCEEDED = "exceeded quota"
_PARTS = ", used: ", ", limited: "


def of_quota(error: errors.ApiError) -> bool:
    """Whether a quota that is used up refuses an object."""
    return isinstance(error, errors.Forbidden) and _EXCEEDED in error.message


def way_out(said: str, where: str) -> str:
    """When there will be room for a pod that a quota refuses.

    Args:
        said: the API server's words.
        where: the field that says what the pod asks for.
    """
    if larger := _larger(said):
        return (
            f"No pod of it can ever be made there, whoever ends: of {', '.join(larger)} one alone "
            f"asks for more than the whole quota; ask for less in {where}, or have an "
            "administrator raise the ResourceQuota"
        )
    return (
        "Its pods are made once others of the namespace have ended, or an administrator raises the "
        "ResourceQuota"
    )


def _larger(said: str) -> list[str]:
    """Resources of which more is requested than the whole quota has."""
    asked, _, rest = said.partition("requested: ")[2].partition(_PARTS[0])
    limits = _amounts(rest.partition(_PARTS[1])[2])
    found = []
    for name, amount in _amounts(asked).items():
        try:
            if name in limits and parse(amount) > parse(limits[name]):
                found.append(name)
        except ValueError:
            continue
    return found


def _amounts(text: str) -> dict[str, str]:
    pairs = (each.strip().partition("=") for each in text.split(","))
    return {name: amount for name, equals, amount in pairs if equals}
