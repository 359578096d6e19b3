"""The label on the operator's own pod that says whether it leads.

The Service for reports selects it, so that they go to the leader alone. A replica takes the label
off when it starts and puts it on when it leads: losing the Lease ends the process, and a pod whose
container starts again is not ready before. A label that cannot be written is tried again; nothing
but reports depends on it.
"""

import asyncio
import logging

from gpu_scheduler.api.names import LABEL_LEADER
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.paths import pod as pod_path

log = logging.getLogger(__name__)


async def follow(client: Client, namespace: str, pod: str, leads: asyncio.Event) -> None:
    """Remove the label, and set it once this replica ``leads``; ``pod`` empty: do nothing."""
    if pod:
        await _keep(client, namespace, pod, None)
        await leads.wait()
        await _keep(client, namespace, pod, "true")


async def _keep(client: Client, namespace: str, pod: str, value: str | None) -> None:
    body = {"metadata": {"labels": {LABEL_LEADER: value}}}
    failures: Failures[str] = Failures(asyncio.get_running_loop().time, first_seconds=0.5)
    while True:
        try:
            return await client.merge_patch(pod_path(namespace, pod), body)
        except errors.ApiError as error:
            if failures.note(pod, error):
                log.warning("the label %s of pod %s: %s", LABEL_LEADER, pod, error)
            if isinstance(error, errors.NotFound):
                return None
        await asyncio.sleep(failures.left_seconds(pod))
