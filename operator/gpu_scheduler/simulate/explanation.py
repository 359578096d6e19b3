"""Why something waits, as one value: what ``kubectl gpu why`` prints, and its ``-o json``.

The verdict is what the operator has written; the rest is asked of the planner on a snapshot::

    object:     {kind, namespace, name, pod}
    verdict:    {phase, reason, message, since, queuePosition, holdsGPU, movedOnBy, helps, note,
                places: [{pod, node, gpu, memoryMiB, devices}]}
    project:    {name, quota, limit, weight, allocated, borrowed, fairShare, pending, waiting}
    projects:   [{name, ...}] as project: all of which something waits, in the order of their turns
    place:      {position, asks, pods, type, priority, created, waitsSince, gang, insideQuota}
    before:     [{position, job, asks, pods, type, priority, created, reason}]
    candidates: [{node, fits, lacks, missingGPU, freeGPU,
                devices: [{number, device, model, freeGPU, freeMemoryMiB, trouble}]}]
    holders:    [{job, project, gpu, pods, nodes, priority, endsBy, ending}]
    estimate:   {kind, text, startsBy, node, givesWay: [{pod, job, message}]}
    notShown:   why there is no more than the verdict

All keys are always there but ``trouble``. Without a plan ``project``, ``place`` and ``estimate``
are null, and the lists are empty. Amounts of GPU are decimal strings, times RFC 3339;
``estimate.kind`` is now, evictions, promises, "time limits", never or unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.simulate import verdict as verdicts
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError

if TYPE_CHECKING:
    from gpu_scheduler.simulate.operator_rules import OperatorRules

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about: see ``cli.finding.ResolvedTarget``, whose fields these are.

    Attributes:
        maker: of a workload: what is known of who makes its pods.
    """

    kind: str
    namespace: str
    name: str
    job: Body | None
    pods: Sequence[Body]
    maker: verdicts.Maker | None = None


def explain(
    subject: Subject,
    read: Callable[[], Objects],
    now: str,
    rules: "Callable[[], OperatorRules] | None" = None,
) -> Json:
    """Why something waits.

    Args:
        subject: what.
        read: the objects of the cluster; called where a plan has something to add.
        now: RFC 3339.
        rules: by which the operator plans; called with ``read``; None: the defaults.
    """
    from gpu_scheduler.kube import errors

    pod = _pod(subject)
    found = _empty(subject, pod, _verdict(subject, pod))
    waits = verdicts.is_planned(found["verdict"])
    is_known = pod is not None or subject.kind == "gpujob"
    if not waits or not is_known or (pod is not None and not verdicts.is_ours(pod)):
        return found
    try:
        return found | _from_plan(subject, pod, read(), now, rules)
    except errors.Forbidden as error:
        why = error.message
    except errors.ApiError:
        raise
    except SimulationError as error:
        why = f"the planner cannot be asked: {error}"
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        why = "the planner needs numpy: pipx install --force '.[cli,plan]' where the sources are"
    except Exception as error:  # a mistake of ours about the rest must not hide the verdict
        told = f"{type(error).__name__}: {error}"
        why = f"the planner cannot work with this cluster ({told})"
    return found | {"notShown": why}


def _pod(subject: Subject) -> Body | None:
    """The pod that is looked at; of a GPUJob the job is."""
    if subject.kind == "gpujob":
        return None
    return verdicts.next_pod(subject.pods) or (subject.pods[0] if subject.kind == "pod" else None)


def _verdict(subject: Subject, pod: Body | None) -> Json:
    if subject.kind == "gpujob" and subject.job is not None:
        return verdicts.of_job(subject.job, subject.pods)
    maker = subject.maker
    if not subject.pods:
        return verdicts.of_none(maker or verdicts.Maker())
    of = verdicts.of_pod(pod, subject.job) if pod is not None else verdicts.of_all(subject.pods)
    return verdicts.beside(of, maker) if maker is not None else of


def _empty(subject: Subject, pod: Body | None, verdict: Json) -> Json:
    name = pod["metadata"]["name"] if pod is not None else None
    return {
        "object": {
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "pod": name,
        },
        "verdict": verdict,
        "project": None,
        "projects": [],
        "place": None,
        "before": [],
        "candidates": [],
        "holders": [],
        "estimate": None,
        "notShown": None,
    }


def _from_plan(
    subject: Subject,
    pod: Body | None,
    objects: Objects,
    now: str,
    rules: "Callable[[], OperatorRules] | None",
) -> Json:
    from gpu_scheduler.simulate import estimate, holders, queue_place
    from gpu_scheduler.simulate.candidates import candidates
    from gpu_scheduler.simulate.operator_rules import DEFAULT
    from gpu_scheduler.simulate.planned import plan_once, without_room_for

    planned = plan_once(objects, now, rules() if rules is not None else DEFAULT)
    uid = str(pod["metadata"].get("uid", "")) if pod is not None else ""
    kind = "gpujob" if subject.kind == "gpujob" else "pod"
    key = planned.key_of(kind, subject.namespace, subject.name, uid)
    job = planned.jobs.get(key) if key is not None else None
    if key is None or job is None or job.project not in planned.projects:
        stopped = (each.message for each in planned.simulated.stopped if each.job == key)
        why = next(stopped, "none of its pods needs a place at present")
        return {"notShown": f"it is in no queue: {why}"}
    projects = queue_place.projects(planned, job.project)
    own = next(each for each in projects if each["name"] == job.project)
    found: Json = {"project": own, "projects": projects}
    room = without_room_for(planned, key)
    group, place = room.group_of(key, uid), planned.place_of(key, uid)
    if group is None or planned.group_of(key) is None:
        return found | {
            "estimate": estimate.at_once(job, place.node) if place is not None else None
        }
    wait = planned.plan.waits.of(key)
    before = queue_place.before(planned, key)
    nodes = candidates(room.session, group)
    reason = wait.reason if wait is not None else None
    waiting = holders.Waiting(key, room, group, reason, len(before))
    pods = waiting.holding()
    return found | {
        "place": queue_place.place(planned, key, group),
        "before": before,
        "candidates": nodes,
        "holders": holders.holders(planned, pods),
        "estimate": estimate.estimate(planned, waiting, pods, nodes),
    }
