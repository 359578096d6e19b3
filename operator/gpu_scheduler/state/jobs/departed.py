"""Objects that are gone, so that late news do not bring them back.

The answer to a read, a list or a write may come after the watch has told of the end of its object,
and what was held would be held for ever: nobody tells of that end twice. A uid never comes back, so
most are gone for good. Only what is watched by label may be seen again, in a later version.
"""

FOR_GOOD = 1 << 64  # above every resourceVersion
_MOST = 20_000  # half a minute of the fastest deletions there are; no answer takes that long


class Departed:
    """Uids of what is gone, the latest so many."""

    def __init__(self, most: int = _MOST) -> None:
        """Start empty; ``most``: how many are remembered."""
        self._versions: dict[str, int] = {}  # by uid, the oldest first
        self._most = most

    def note(self, uid: str, version: int = FOR_GOOD) -> None:
        """Remember one; ``version``: the last in which it was there, if it may come back."""
        self._versions.pop(uid, None)
        self._versions[uid] = version
        if len(self._versions) > self._most:
            del self._versions[next(iter(self._versions))]

    def outdates(self, uid: str, version: int) -> bool:
        """Whether news of this version are from before it went."""
        return version <= self._versions.get(uid, -1)
