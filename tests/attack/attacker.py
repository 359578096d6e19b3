"""Who attacks: a user with ``edit`` in namespaces with a project and in one without.

Each attack has an attacker of its own, which sends its requests over one connection, as fast as the
API server answers them, and counts what came of each. What it makes it removes: at most ``most``
objects of an attack are there at once.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.api.caller import MERGE_PATCH, Answer, Caller
from tests.api.tenant import GROUP, Json
from tests.soak.site import AWAY

GPUJOBS, PODS, JOBS = "gpujobs", "pods", "jobs"
GROUPS = {
    GPUJOBS: GROUP,
    JOBS: "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
}
_MOST_MESSAGES = 500  # many name an object each
_AT_ONCE = {"gracePeriodSeconds": 0}


@dataclass(frozen=True, slots=True)
class Scene:
    """Where it attacks.

    Attributes:
        home: a namespace with a project.
        compat: one of the same, whose pods may ask with another scheduler's keys as well.
        elsewhere: a namespace without a project.
        nodes: names of nodes with GPUs.
        reports: host and port of the operator's port for reports; empty: it is not attacked.
        few: of everything as little as shows what comes of it.
    """

    home: str
    compat: str
    elsewhere: str
    nodes: Sequence[str]
    reports: str = ""
    few: bool = False


@dataclass(slots=True)
class Attacker:
    """One user and one attack."""

    name: str  # of the attack, and of all that it makes
    caller: Caller
    scene: Scene
    dice: Random
    answers: Counter[str] = field(default_factory=Counter)
    """What came of its requests, by status."""
    messages: Counter[str] = field(default_factory=Counter)
    """Beginnings of refusals."""
    _number: int = 0
    made: deque[str] = field(default_factory=deque)
    """Paths of what it made and has not removed, the oldest first."""
    held: set[str] = field(default_factory=set)
    """Those that have finalizers."""

    @property
    def home(self) -> str:
        return self.scene.home

    @property
    def compat(self) -> str:
        return self.scene.compat

    @property
    def elsewhere(self) -> str:
        return self.scene.elsewhere

    def anywhere(self) -> str:
        """One of its namespaces."""
        return self.dice.choice((self.home, self.compat, self.elsewhere))

    def node(self) -> str:
        return self.dice.choice(self.scene.nodes)

    def many(self, count: int) -> range:
        """So many times, or where few do, twice."""
        return range(min(2, count) if self.scene.few else count)

    def called(self) -> str:
        """A name that nothing has had yet."""
        self._number += 1
        return f"{self.name}-{self._number}"

    def send(
        self,
        method: str,
        path: str,
        body: Json | bytes | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send one request; no answer counts as one. Nothing is sent about what was not made."""
        if not path:
            return Answer(404, {})
        try:
            answer = self.caller.send(method, path, body, content_type)
        except AWAY as error:
            answer = Answer(599, {"message": type(error).__name__})
        self.answers[str(answer.status)] += 1
        if not answer.ok and len(self.messages) < _MOST_MESSAGES:
            self.messages[f"{answer.status} {answer.message[:200]}"] += 1
        return answer

    def create(
        self, namespace: str, kind: str, body: Json | bytes, content_type: str = "application/json"
    ) -> str:
        """Make an object; its path, or nothing where it was refused."""
        at = path(namespace, kind)
        answer = self.send("POST", at, body, content_type)
        if not answer.ok:
            return ""
        made = f"{at}/{answer.body['metadata']['name']}"
        self.made.append(made)
        return made

    def patch(self, made: str, body: Json) -> Answer:
        return self.send("PATCH", made, body, MERGE_PATCH)

    def remove(self, made: str, **options: Any) -> None:
        """Delete an object at once, whatever holds it."""
        if made in self.held:
            self.patch(made, {"metadata": {"finalizers": None}})
            self.held.remove(made)
        self.send("DELETE", made, {**_AT_ONCE, **options})
        if made in self.made:
            self.made.remove(made)

    def keep(self, most: int) -> None:
        """Let the newest of its objects be, so many of them."""
        while len(self.made) > most:
            self.remove(self.made[0])


def path(namespace: str, kind: str, name: str = "") -> str:
    """Of a collection, or of an object in it."""
    found = f"{GROUPS.get(kind, '/api/v1')}/namespaces/{namespace}/{kind}"
    return f"{found}/{name}" if name else found
