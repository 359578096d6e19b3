"""What others said of one object in Events: of volumes and sandboxes a pod itself says nothing.

Asked only of pods that hang, one object at a time, because the API server walks all Events of a
namespace for an answer. Where the operator may not read Events, it stops asking.
"""

import logging
from typing import Any

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core
from gpu_scheduler.state.pods.containers import KUBELET_CHARS, Trouble, line
from gpu_scheduler.state.pods.pod import PodRecord

log = logging.getLogger(__name__)

_MOST = 200  # Events of one pod
_VOLUME = {"FailedMount", "FailedAttachVolume", "FailedMapVolume"}
_SANDBOX = {"FailedCreatePodSandBox", "NetworkNotReady", "FailedCreatePodContainer"}


class ObjectEvents:
    """Reads Events."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.allowed = True
        """False once the API server has said that the operator may not."""

    async def trouble(self, pod: PodRecord) -> Trouble | None:
        """What the last Event on a pod says of volumes or its sandbox; None: nothing.

        Raises:
            ApiError: the API server could not be asked.
        """
        try:
            found = await self._client.get(
                core("events", pod.namespace),
                fieldSelector=f"involvedObject.uid={pod.uid},type=Warning",
                limit=_MOST,
            )
        except errors.Forbidden as error:
            if self.allowed:
                log.warning("pods that hang are not explained: %s", error)
            self.allowed = False
            return None
        told = [e for e in found.get("items") or () if _reason(e) is not None]
        if not told:
            return None
        last = max(told, key=_when)
        reason = _reason(last)
        assert reason is not None, "others were left out"
        said = line(str(last.get("message") or ""), KUBELET_CHARS)
        text = f"pod {pod.name} on {pod.node}: {last['reason']}: {said}"
        return Trouble(reason, text)


def _reason(event: dict[str, Any]) -> Reason | None:
    if event.get("reason") in _VOLUME:
        return Reason.VOLUME_NOT_MOUNTED
    return Reason.SANDBOX_NOT_CREATED if event.get("reason") in _SANDBOX else None


def _when(event: dict[str, Any]) -> str:
    series = event.get("series") or {}
    times = (event.get("lastTimestamp"), event.get("eventTime"), series.get("lastObservedTime"))
    return max((str(each)[:19] for each in times if each), default="")
