"""The screen of ``kubectl gpu describe``: pure, but for the Events that it reads.

Of objects that another version wrote, what is not there is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.finding import ResolvedTarget
from gpu_scheduler.cli.lists.job_table import age
from gpu_scheduler.cli.lists.share_rows import PodOwner, held, owner_of, reason_of
from gpu_scheduler.cli.one_pod.choosing import index_of, phase_of, role_of, scheduled, trial_of
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.model.wording import memory
from gpu_scheduler.kube import errors, paths

_MOST_PODS = 20
_MOST_EVENTS = 15
_WIDTH = 14  # of what stands in front
_FIELDS = (
    ("GPUs", "gpu"),
    ("GPU memory", "gpuMemory"),
    ("Devices", "gpuDevices"),
    ("Models", "gpuModels"),
    ("Shape", "shape"),
    ("Priority", "priority"),
    ("Retries", "retries"),
    ("Time limit", "timeLimitSeconds"),
    ("Isolation", "isolation"),
)


def lines(
    found: ResolvedTarget, events: Sequence[Body], now: datetime | None = None
) -> Iterator[str]:
    """The screen, line by line."""
    at = now or datetime.now(UTC)
    head = (
        _job(found.job, at)
        if found.kind == "gpujob" and found.job is not None
        else _workload(found, at)
    )
    yield from (line for line in head if line)
    yield from _pods(found.pods, at)
    if found.kind == "gpujob" and found.job is not None:
        yield from _conditions((found.job.get("status") or {}).get("conditions") or (), at)
    elif found.kind == "pod":
        status = found.pods[0].get("status") or {}
        ours = [c for c in status.get("conditions") or () if _tells(c)]
        yield from _conditions(ours, at)
    yield from _events(events, at)


def folded(line: str, columns: int) -> Iterator[str]:
    """A line for a terminal of so many columns: what does not fit stands below its beginning."""
    import textwrap

    title = re.match(r" +|[A-Z][^:]{0,12}: +", line)
    indent = " " * (title.end() if title else 0)
    parts = textwrap.wrap(
        line,
        max(columns, len(indent) + 20),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from parts or [line]


def read_events(cluster: ClusterAccess, found: ResolvedTarget) -> list[Body]:
    """Events about it and its pods, the newest last; none where they may not be seen."""
    names = {found.name, *(str(pod["metadata"]["name"]) for pod in found.pods)}
    uids = {str(pod["metadata"].get("uid")) for pod in found.pods}
    if found.job is not None:
        uids.add(str(found.job["metadata"].get("uid")))
    try:
        told = list(cluster.client.items(paths.core("events", found.namespace)))
    except errors.Forbidden:
        return []
    about = [e for e in told if _is_about(e.get("involvedObject") or {}, names, uids)]
    return sorted(about, key=_moment)


def _is_about(subject: Body, names: set[str], uids: set[str]) -> bool:
    if uid := subject.get("uid"):
        return str(uid) in uids
    return str(subject.get("name")) in names


def _job(job: Body, now: datetime) -> Iterator[str]:
    meta, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
    yield _line("Name", meta.get("name"))
    yield _line("Namespace", meta.get("namespace"))
    yield _line("Project", status.get("project") or "none")
    yield _line("Made", f"{age(str(meta.get('creationTimestamp') or ''), now)} ago")
    for key in ("labels", "annotations"):
        said = {k: v for k, v in (meta.get(key) or {}).items() if "last-applied" not in k}
        if said:
            yield _line(key.capitalize(), ", ".join(f"{k}={v}" for k, v in said.items()))
    yield _line(
        "Status", ": ".join(filter(None, (status.get("phase") or "new", status.get("reason"))))
    )
    if status.get("message"):
        yield _line("", status["message"])
    if status.get("firstFailure"):
        yield _line("First failure", status["firstFailure"])
    if status.get("queuePosition") is not None:
        yield _line("Queue", f"number {status['queuePosition']} of its project")
    if status.get("evictions"):
        lost = status.get("lostGPUSeconds") or 0
        yield _line("Evictions", f"{status['evictions']}, {lost} GPU seconds lost")
    yield _line("Type", spec.get("type") or "training")
    yield from _image(spec)
    for title, key in _FIELDS:
        if spec.get(key) is not None:
            value = spec[key]
            yield _line(title, ", ".join(map(str, value)) if isinstance(value, list) else value)
    yield _line("Held/asked", status.get("gpu") or "nothing yet")
    yield _line("At once", spec.get("parallelism", 1))
    yield _line("In all", spec.get("completions"))
    for role in spec.get("roles") or ():
        asks = role.get("gpu") or role.get("gpuMemory") or "no GPU"
        yield _line(f"Role {role.get('name')}", f"{role.get('replicas', 1)} pods of {asks}")
    yield _line("Pods", _counts(status))
    yield from _sweep(spec.get("sweep") or {}, status.get("sweep") or {})
    yield from _checkpoint(spec)


def _image(spec: Body) -> Iterator[str]:
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = pod.get("containers") or [spec]
    for each in containers:
        if not isinstance(each, Mapping):
            continue
        name = each.get("name")
        yield _line("Image", f"{each.get('image')} ({name})" if name else each.get("image"))
        words = [*(each.get("command") or ()), *(each.get("args") or ())]
        yield _line("Runs", " ".join(map(_quoted, words)) or None)


def _sweep(spec: Body, status: Body) -> Iterator[str]:
    if not spec:
        return
    names = ", ".join(sorted(spec.get("parameters") or ()))
    yield _line("Sweep", f"{spec.get('algorithm')}{f' over {names}' if names else ''}")
    best = status.get("best") or {}
    if best.get("value") is not None:
        metric = (spec.get("objective") or {}).get("metric") or "objective"
        yield _line("Best", f"{metric} {best['value']:g} (trial {best.get('trial')})")


def _checkpoint(spec: Body) -> Iterator[str]:
    checkpoint = spec.get("checkpoint") or {}
    if checkpoint:
        yield _line("Checkpoint", checkpoint.get("mountPath") or "yes")


def _counts(status: Body) -> str:
    counts = status.get("pods") or {}
    return ", ".join(
        f"{counts.get(k, 0)} {k}" for k in ("running", "pending", "succeeded", "failed")
    )


def _workload(found: ResolvedTarget, now: datetime) -> Iterator[str]:
    workload = PodOwner(found.namespace, f"{found.kind}/{found.name}")
    workload.pods = {str(pod["metadata"].get("uid")): pod for pod in found.pods}
    cells = workload.cells()
    yield _line("Name", workload.name)
    yield _line("Namespace", found.namespace)
    if found.kind == "pod" and (owner := owner_of(found.pods[0])[1]) != workload.name:
        yield _line("Made by", f"gpujob/{found.job['metadata']['name']}" if found.job else owner)
    yield _line("Made", f"{age(workload.created(), now)} ago")
    yield _line("Status", ": ".join(filter(None, (cells["STATUS"], cells["REASON"]))))
    unscheduled = (c for pod in found.pods if (c := scheduled(pod)).get("status") == "False")
    yield _line("", next(filter(None, (c.get("message") for c in unscheduled)), None))
    yield _line("Type", cells["TYPE"])
    yield _line("Held/asked", cells["GPU"] if found.job is None else None)
    images = dict.fromkeys(
        str(each.get("image"))
        for pod in found.pods
        for each in (pod.get("spec") or {}).get("containers") or ()
    )
    yield _line("Image", ", ".join(images))


def _pods(pods: Sequence[Body], now: datetime) -> Iterator[str]:
    if not pods:
        return
    running = sorted(pods, key=lambda pod: phase_of(pod) != "Running")
    yield ""
    yield f"Pods ({len(pods)}):"
    for pod in running[:_MOST_PODS]:
        yield f"  {pod['metadata']['name']}"
        number = trial_of(pod) if trial_of(pod) is not None else index_of(pod)
        word = "trial" if trial_of(pod) is not None else "index"
        place = filter(None, (role_of(pod), "" if number is None else f"{word} {number}"))
        said = [phase_of(pod) or "Pending", reason_of(pod), *place]
        if node := (pod.get("spec") or {}).get("nodeName"):
            said.append(f"on {node}")
        said.append(f"{age(str(pod['metadata'].get('creationTimestamp') or ''), now)} old")
        yield f"    {', '.join(filter(None, said))}"
        has = held(pod)
        for allocated in has.devices if has else ():
            cap = memory(allocated.mib * 2**20)
            yield f"    {allocated.device}: {gpu_from_milli(allocated.milli)} of it, at most {cap}"
    if len(pods) > _MOST_PODS:
        yield f"  and {len(pods) - _MOST_PODS} more"


def _conditions(conditions: Iterable[Body], now: datetime) -> Iterator[str]:
    known = [each for each in conditions if isinstance(each, Mapping)]
    if known:
        yield ""
        yield "Conditions:"
    for each in known:
        since = age(str(each.get("lastTransitionTime") or ""), now)
        reason = (
            f" {each['reason']}" if each.get("reason") not in (None, "", each.get("type")) else ""
        )
        yield f"  {each.get('type')}={each.get('status')}{reason} ({since})"
        if each.get("message"):
            yield f"    {each['message']}"


def _tells(condition: Body) -> bool:
    return condition.get("status") == "False" or "/" in str(condition.get("type"))


def _events(events: Sequence[Body], now: datetime) -> Iterator[str]:
    if not events:
        return
    yield ""
    yield "Events:" if len(events) <= _MOST_EVENTS else f"Events (the last {_MOST_EVENTS}):"
    for each in events[-_MOST_EVENTS:]:
        times = each.get("count") or (each.get("series") or {}).get("count") or 1
        often = f", {times} times" if isinstance(times, int) and times > 1 else ""
        subject = each.get("involvedObject") or {}
        about = f" {str(subject.get('kind', '')).lower()}/{subject.get('name', '')}"
        said = f"{each.get('type', '')} {each.get('reason', '')}"
        yield f"  {age(_moment(each), now)} ago {said}{about}{often}"
        yield f"    {str(each.get('message') or '').strip()}"


def _moment(event: Body) -> str:
    """When it was last seen, RFC 3339."""
    series = event.get("series") or {}
    made = (event.get("metadata") or {}).get("creationTimestamp")
    for each in (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        made,
    ):
        if each:
            return str(each)
    return ""


def _line(title: str, value: object) -> str:
    """Empty where there is no value."""
    if value in (None, ""):
        return ""
    return f"{f'{title}:' if title else '':{_WIDTH}} {value}"


def _quoted(word: object) -> str:
    import shlex

    return shlex.quote(str(word))
