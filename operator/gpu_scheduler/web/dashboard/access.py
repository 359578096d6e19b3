"""Who asks, and what they may see: nobody is let in whom the API server does not know.

Whatever goes wrong on the way ends as a ``Refusal``: 401 without a good token, 503 where the API
server does not answer, never a guess.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from aiohttp import web

from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.web.dashboard.identities import NO_TOKEN, Identities, Identity, bearer
from gpu_scheduler.web.dashboard.rights import Rights


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks.

    Attributes:
        who: as the API server says.
        token: that shows it, for what is done by the user's own rights.
        source: address that it came from.
    """

    who: Identity
    token: str = field(repr=False)
    source: str


class Access:
    """Asks the API server, within bounds."""

    def __init__(
        self,
        client: Client,
        namespaces: Callable[[], frozenset[str]],
        clock: Clock,
        random: Random | None = None,
    ) -> None:
        """``client``: the operator's; ``namespaces``: those in which there is anything to see."""
        self.identities = Identities(client, clock, random)
        self.rights = Rights(client, namespaces, clock.monotonic, random)

    def close(self) -> None:
        """Ask no more."""
        self.rights.close()

    async def reader(self, token: str, source: str) -> Reader:
        """Who has this token now.

        Raises:
            Refusal: nobody, or nobody knows.
        """
        return Reader(await self.identities.of(token, source), token, source)

    async def visible(self, reader: Reader, about: Sequence[str] = ()) -> Visible:
        """What they may see now; ``about``: namespaces that the question is about.

        Raises:
            Refusal: nobody knows.
        """
        return await self.rights.visible(reader.who, about)

    def reviews(self) -> dict[tuple[str, str], int]:
        """How often the API server was asked, by kind of review and result."""
        asked = {"token": self.identities.results, "access": self.rights.results}
        return {
            (kind, result): asked[kind][result] for kind, results in RESULTS for result in results
        }


RESULTS = (
    ("token", ("accepted", "refused", "failed")),
    ("access", ("allowed", "refused", "failed")),
)


def token_of(request: web.Request) -> str:
    """What a request shows.

    Raises:
        Refusal: no token, or more than one.
    """
    found = request.headers.getall("Authorization", ())
    if len(found) != 1:
        raise NO_TOKEN
    return bearer(found[0])
