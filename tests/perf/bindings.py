"""Bindings of the chart's policies, taken away and put back: what a policy costs is the difference.

Called by ``bench_fence`` and ``admission``, which wait until the API server knows.
"""

import re

from cluster import Running

_GIVEN_BY_SERVER = re.compile(r"^ +(resourceVersion|uid|managedFields):.*\n?", re.MULTILINE)


class Bindings:
    """Some bindings that are in force."""

    def __init__(self, running: Running, *names: str) -> None:
        """``names``: as kubectl has them, kind/name."""
        self._running, self._names = running, names
        self._saved = new(running.kubectl("get", *names, "--output=yaml").stdout)

    def put_back(self) -> None:
        """Have the policies in force again; nothing where they are."""
        self._running.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", input=self._saved
        )

    def take_away(self) -> None:
        """Have them in force no more."""
        self._running.kubectl("delete", "--ignore-not-found", *self._names)


def new(saved: str) -> str:
    """Objects as they were read, as YAML, to be created again."""
    return _GIVEN_BY_SERVER.sub("", saved)
