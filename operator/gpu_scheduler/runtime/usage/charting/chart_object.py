"""Keeps charts where the next leader finds them: a GPUUsage in the operator's own namespace."""

import base64
import binascii
import logging

from gpu_scheduler.api.gpuusage import CLUSTER_NAME
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.usage.charting.chart import BadChartsError, Charts
from gpu_scheduler.runtime.usage.usage_writes import UsageWrites

log = logging.getLogger(__name__)


class ChartObject:
    """Reads and writes it."""

    def __init__(self, client: Client, namespace: str) -> None:
        """``client``: fenced by the Lease; ``namespace``: the operator's."""
        self._client = client
        self._namespace = namespace
        self._writes = UsageWrites(client, CLUSTER_NAME)

    async def read(self) -> Charts:
        """What a leader before this one kept; none where there is nothing, or nothing of ours.

        Raises:
            ApiError: the API server does not say.
        """
        try:
            found = await self._client.get(self._writes.path(self._namespace), dict)
        except errors.NotFound:
            return Charts()
        self._writes.uids[self._namespace] = found["metadata"]["uid"]
        text = (found.get("status") or {}).get("charts")
        if not text or not isinstance(text, str):
            return Charts()
        try:
            return Charts.loads(base64.b64decode(text, validate=True))
        except (BadChartsError, binascii.Error, ValueError) as error:
            log.warning("charts begin anew: what was kept cannot be read: %s", error)
            return Charts()

    async def write(self, charts: Charts, stamp: str) -> None:
        """Write all of them; ``stamp``: now.

        Raises:
            ApiError: it was not written.
        """
        packed = base64.b64encode(charts.dumps()).decode()
        await self._writes.write(self._namespace, {"charts": packed, "observedAt": stamp})
