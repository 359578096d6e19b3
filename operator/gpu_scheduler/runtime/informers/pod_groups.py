"""Kubernetes' PodGroups, watched from the first pod on that names one, and never before.

Most clusters have none, and until their API is on no API server serves it: in another version at
that (``POD_GROUPS``), so it is asked which. The fields that are read are the same in all.
"""

import asyncio
import logging
from typing import NoReturn

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import LastWords
from gpu_scheduler.kube.objects import PodGroup
from gpu_scheduler.kube.paths import POD_GROUPS
from gpu_scheduler.kube.reflector import Reflector
from gpu_scheduler.state.cluster_state import ClusterState

log = logging.getLogger(__name__)

GROUP, PLURAL = "scheduling.k8s.io", "podgroups"
VERSIONS = tuple(POD_GROUPS)
_BACKOFF = Backoff(1.0, 60.0)


class PodGroups:
    """Tells the state what PodGroups say."""

    def __init__(self, client: Client, state: ClusterState) -> None:
        """``state``: says when one is asked for."""
        self._client = client
        self._state = state
        self._wanted = asyncio.Event()
        state.groups.pod_groups.want = self._wanted.set

    async def run(self) -> NoReturn:
        """Watch them from the first question on."""
        await self._wanted.wait()
        path = POD_GROUPS[await self._version()]
        await Reflector(self._client, path, PodGroup, self).run()
        raise AssertionError("a reflector does not end by itself")

    def changed(self, obj: PodGroup) -> None:
        """A PodGroup was added or changed."""
        if self._state.groups.pod_groups.put(obj):
            self._state.pod_group_said(obj.metadata.namespace, obj.metadata.name)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A PodGroup is gone."""
        if self._state.groups.pod_groups.drop(namespace, name):
            self._state.pod_group_said(namespace, name)

    async def _version(self) -> str:
        """That in which the API server serves them, once it does."""
        failure = LastWords(asyncio.get_running_loop().time)
        attempt = 0
        while True:
            for version in VERSIONS:
                try:
                    found = await self._client.get(f"/apis/{GROUP}/{version}")
                except errors.NotLeader:
                    raise
                except errors.NotFound:
                    continue
                except errors.ApiError as error:
                    if failure.news(error):
                        log.warning("looking for %s of %s: %s", PLURAL, GROUP, error)
                    break
                if any(each.get("name") == PLURAL for each in found.get("resources") or ()):
                    return version
            await asyncio.sleep(_BACKOFF.delay_seconds(attempt))
            attempt += 1
