"""Keeps charts where the next leader finds them: a GPUUsage in the operator's own namespace."""

import base64
import binascii
import logging
from typing import Any

from gpu_scheduler.api.gpuusage import CLUSTER_NAME
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.runtime.status.status_writer import merged
from gpu_scheduler.runtime.usage.chart import BadChartsError, Charts

log = logging.getLogger(__name__)

_GPUUSAGES = "gpuusages"


class ChartObject:
    """Reads and writes it."""

    def __init__(self, client: Client, namespace: str) -> None:
        """``client``: fenced by the Lease; ``namespace``: the operator's."""
        self._client = client
        self._namespace = namespace
        self._uid = ""

    async def read(self) -> Charts:
        """What a leader before this one kept; none where there is nothing, or nothing of ours.

        Raises:
            ApiError: the API server does not say.
        """
        try:
            found = await self._client.get(self._path(CLUSTER_NAME), dict)
        except errors.NotFound:
            return Charts()
        self._uid = found["metadata"]["uid"]
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
        if not self._uid:
            self._uid = await self._make()
        patch = {"charts": base64.b64encode(charts.dumps()).decode(), "observedAt": stamp}
        path = self._path(CLUSTER_NAME, "status")
        try:
            await send(self._client, merged(path, self._uid, patch))
        except errors.ApiError as error:
            if isinstance(error, errors.NotFound) or errors.another_object(error):
                self._uid = ""  # somebody deleted it: it is made again
            raise

    async def _make(self) -> str:
        body: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": "GPUUsage",
            "metadata": {"name": CLUSTER_NAME, "namespace": self._namespace},
        }
        try:
            path = of_group(GROUP, VERSION, _GPUUSAGES, self._namespace)
            made = await self._client.create(path, body, dict)
        except errors.Conflict:
            made = await self._client.get(self._path(CLUSTER_NAME), dict)
        uid: str = made["metadata"]["uid"]
        return uid

    def _path(self, name: str, subresource: str = "") -> str:
        return of_group(
            GROUP, VERSION, _GPUUSAGES, self._namespace, name=name, subresource=subresource
        )
