"""The dashboard of one replica, put together: what it asks the API server by, and where it listens.

Two ways to the API server, neither of them the leader's: reviews go by the operator's account,
which stores nothing with them; what users do goes without any credentials of ours. So neither waits
behind the writes that place pods, nor do these behind them.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from gpu_scheduler import __version__
from gpu_scheduler.dashboard.pages import PAGES
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard import assets
from gpu_scheduler.web.dashboard.access import Access
from gpu_scheduler.web.dashboard.app import STREAMS, DashboardParts, app
from gpu_scheduler.web.dashboard.listening import DashboardListener
from gpu_scheduler.web.dashboard.namespaces import WorkNamespaces
from gpu_scheduler.web.dashboard.own_token import OwnToken
from gpu_scheduler.web.dashboard.pictures import Pictures
from gpu_scheduler.web.dashboard.stream import StreamLimits
from gpu_scheduler.web.dashboard.what_if import WhatIfProcesses

_AGENT = f"gpu-scheduler-dashboard/{__version__}"
_REVIEWS_IN_FLIGHT, _USERS_IN_FLIGHT = 16, 10


class Dashboard:
    """Serves until ``cleanup``."""

    def __init__(
        self,
        settings: OperatorSettings,
        connection: Connection,
        clock: Clock,
        leading: Callable[[], Operator | None],
    ) -> None:
        """Nothing listens yet.

        Args:
            settings: the operator's.
            connection: its way to the API server.
            clock: of this process.
            leading: who leads here and knows the cluster; None: nobody.

        Raises:
            OSError: certificate or front end cannot be read.
            ValueError: the front end is none.
        """
        self._settings = settings
        self._reviews = Client(
            connection, user_agent=_AGENT, concurrency=_REVIEWS_IN_FLIGHT, timeout_seconds=5.0
        )
        self._users = Client(
            without_credentials(connection), user_agent=_AGENT, concurrency=_USERS_IN_FLIGHT
        )

        self._pictures = Pictures(leading)

        def state() -> ClusterState | None:
            leader = leading()
            return None if leader is None else leader.state

        namespaces = WorkNamespaces(state, clock.monotonic)
        self._access = Access(self._reviews, namespaces, clock)
        self._what_if = WhatIfProcesses(leading)
        self._application = app(
            DashboardParts(
                pages=PAGES,
                leads=self._pictures.leads,
                picture=self._pictures,
                access=self._access,
                clock=clock.monotonic,
                own_token=OwnToken(self._users, clock.monotonic),
                what_if=self._what_if.answer,
                actions=settings.dashboard_actions,
                assets=assets.read(settings.dashboard_folder),
                streams=StreamLimits(),
            )
        )
        self._listener = DashboardListener(self._application, settings.dashboard_tls_folder)

    async def start(self) -> tuple[int, int]:
        """Begin to listen: the ports, see ``DashboardListener``.

        Raises:
            OSError: somebody else listens there.
        """
        settings = self._settings
        return await self._listener.start(settings.dashboard_port, settings.dashboard_tls_port)

    async def cleanup(self) -> None:
        """Listen no more."""
        async with AsyncExitStack() as stack:
            own = self._users.close, self._reviews.close, self._listener.cleanup
            for close in (*own, self._what_if.close):
                stack.push_async_callback(close)

    def reviews(self) -> dict[tuple[str, str], int]:
        """See ``DashboardFigures``."""
        return self._access.reviews()

    def open_streams(self) -> int:
        """See ``DashboardFigures``."""
        return len(self._application[STREAMS])


def without_credentials(connection: Connection) -> Connection:
    """The same API server for somebody else: a certificate of ours would win over their token."""
    return replace(
        connection,
        token="",
        token_file=None,
        certificate_pem="",
        certificate_file=None,
        key_pem="",
        key_file=None,
    )
