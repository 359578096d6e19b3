"""Status of GPUClasses: how many GPUs each stands for, and which of its shapes are another's.

Written when nodes or classes change, at most once per tick. What it says follows from what is known
now, so a write that fails is tried again at the next tick. Run by ``operator``.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NoReturn

from gpu_scheduler.api.condition import Condition
from gpu_scheduler.api.gpuclass import GPUClassStatus
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.core.model.catalogue import Catalogue
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.wording import names
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.custom_resources import GPUCLASSES, CustomResources
from gpu_scheduler.state.classes import ClassRecord
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.owners import Claim

log = logging.getLogger(__name__)


def stock(cluster: Cluster, catalogue: Catalogue) -> dict[str, tuple[int, int]]:
    """GPUs and nodes by class."""
    gpus: Counter[str] = Counter()
    nodes: defaultdict[str, set[int]] = defaultdict(set)
    for node, (begin, end) in enumerate(zip(cluster.first, cluster.first[1:], strict=False)):
        for model, count in Counter(cluster.dev_model[begin:end]).items():
            kind = catalogue.of(model)
            if kind is not None:
                gpus[kind.name] += count
                nodes[kind.name].add(node)
    return {name: (count, len(nodes[name])) for name, count in gpus.items()}


def class_status(
    record: ClassRecord,
    *,
    gpus: int,
    nodes: int,
    taken: tuple[Claim, ...],
    before: Mapping[str, Any],
    now: str,
) -> GPUClassStatus:
    """The status that a class should have (``before``: the one it has, as JSON)."""
    problem = record.problem or "; ".join(
        f"spec.shapes: {each.name} belongs to GPUClass {each.owner} already; remove it here or "
        "there"
        for each in taken[:5]
    )
    missing = f"no GPU of the cluster has {record.match} in its product name, or other classes "
    missing = f"{missing}say more of it" if record.match else "other classes match every GPU"
    wanted = (
        ("Accepted", not problem, "Invalid" if problem else "Accepted", problem),
        ("Matches", gpus > 0, "Matches" if gpus else "NoSuchGPU", "" if gpus else missing),
    )
    sizes = sorted(record.shapes.items(), key=lambda item: (item[1], item[0]))
    return GPUClassStatus(
        observed_generation=record.generation,
        gpus=gpus,
        nodes=nodes,
        shapes=names([f"{name}={count}" for name, count in sizes]),
        conditions=[_condition(*each, record.generation, before, now) for each in wanted],
    )


def _condition(
    kind: str,
    holds: bool,
    reason: str,
    message: str,
    generation: int,
    before: Mapping[str, Any],
    now: str,
) -> Condition:
    status = "True" if holds else "False"
    known = next((c for c in before.get("conditions") or () if c.get("type") == kind), None)
    same = known is not None and known.get("status") == status
    return Condition.model_validate(
        {
            "type": kind,
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": known["lastTransitionTime"] if known and same else now,
            "reason": reason,
            "message": message,
        }
    )


class ClassStatusWriter:
    """Keeps the status of GPUClasses."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        custom_resources: CustomResources,
        *,
        seconds: float,
    ) -> None:
        """``seconds``: time between two looks."""
        self._state, self._client, self._custom_resources, self._seconds = (
            state,
            client,
            custom_resources,
            seconds,
        )
        self._seen: tuple[object, object] = (None, None)
        self._stock: dict[str, tuple[int, int]] = {}

    async def run(self) -> NoReturn:
        """Write for ever; ends with NotLeader when the fence closes."""
        while True:
            try:
                await self.write()
            except errors.NotLeader:
                raise
            except Exception:
                unexpected("class_status", "a look at all classes")
            await asyncio.sleep(self._seconds)

    async def write(self) -> None:
        """Write what is not as it should be."""
        book, cluster = self._state.classes, self._state.snapshot()
        # Both are replaced, never changed in place, when nodes or classes change.
        models, catalogue = self._seen
        if models is not cluster.dev_model or catalogue is not book.catalogue:
            self._seen = cluster.dev_model, book.catalogue
            self._stock = stock(cluster, book.catalogue)
        for name, record in tuple(book.records.items()):
            try:
                await self._write(name, record)
            except errors.NotLeader:
                raise
            except Exception:
                unexpected("class_status", name)

    async def _write(self, name: str, record: ClassRecord) -> None:
        gpus, nodes = self._stock.get(name, (0, 0))
        before = self._custom_resources.class_status.get(name, {})
        status = class_status(
            record,
            gpus=gpus,
            nodes=nodes,
            taken=self._state.classes.conflicts(name),
            before=before,
            now=utc_now(),
        ).to_json()
        if status != before:
            await self._patch(record, status)

    async def _patch(self, record: ClassRecord, status: dict[str, Any]) -> None:
        path = of_group(GROUP, VERSION, GPUCLASSES, name=record.name, subresource="status")
        try:
            body = {"metadata": {"uid": record.uid}, "status": status}
            await self._client.merge_patch(path, body)
        except errors.NotLeader:
            raise
        except errors.NotFound:
            pass  # the watch brings the news
        except errors.ApiError as error:
            log.warning("status at %s not written: %s", path, error)
            return
        self._custom_resources.class_status[record.name] = status
