"""Writes the status of a GPUUsage, and makes the object where there is none."""

from collections.abc import Mapping
from typing import Any

from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.runtime.status.status_writer import merged

GPUUSAGES = "gpuusages"


class NamespaceGoneError(Exception):
    """There is no such namespace any more."""


class UsageWrites:
    """One object a namespace, of one name."""

    def __init__(self, client: Client, name: str) -> None:
        """``client``: fenced by the Lease."""
        self._client = client
        self._name = name
        self.uids: dict[str, str] = {}  # of those that are known, by namespace
        self.count = 0
        """Requests that wrote."""

    def path(self, namespace: str, subresource: str = "") -> str:
        """Of the object of a namespace."""
        return of_group(
            GROUP, VERSION, GPUUSAGES, namespace, name=self._name, subresource=subresource
        )

    async def write(self, namespace: str, status: Mapping[str, Any]) -> None:
        """Have these fields stand in it; lists are replaced whole.

        Raises:
            NamespaceGoneError: there is none to write into.
            ApiError: it was not written.
        """
        if namespace not in self.uids:
            await self._make(namespace)
        try:
            path = self.path(namespace, "status")
            await send(self._client, merged(path, self.uids[namespace], status))
        except errors.ApiError as error:
            if isinstance(error, errors.NotFound) or errors.another_object(error):
                self.uids.pop(namespace, None)  # somebody deleted it: it is made again
            raise
        self.count += 1

    async def _make(self, namespace: str) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": "GPUUsage",
            "metadata": {"name": self._name, "namespace": namespace},
        }
        try:
            path = of_group(GROUP, VERSION, GPUUSAGES, namespace)
            made = await self._client.create(path, body, dict)
        except errors.Conflict:
            made = await self._client.get(self.path(namespace), dict)
        except errors.NotFound as error:  # of a kind that is missing the answer names nothing
            if error.details.name == namespace:
                raise NamespaceGoneError from error
            raise
        self.count += 1
        self.uids[namespace] = made["metadata"]["uid"]
