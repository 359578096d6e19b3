from tests.perf.queue_watch import JOB_NAME, JobEyes, Placed, PodEyes, Stated, _Spec, _Status

from gpu_scheduler.kube.objects import Meta


def gpujob(name: str, phase: str = "Pending", reason: str = "") -> Stated:
    return Stated(Meta(name=name), _Status(phase=phase, reason=reason))


def pod(uid: str, node: str = "", phase: str = "Pending") -> Placed:
    meta = Meta(name=uid, uid=uid, labels={JOB_NAME: "wait-1"})
    return Placed(meta, _Spec(node), _Status(phase=phase))


def test_being_on_its_way_is_a_reason_and_no_verdict() -> None:
    eyes = JobEyes()
    eyes.changed(gpujob("wait-1"))
    assert not eyes.spoken
    eyes.changed(gpujob("wait-1", reason="CreatingJob"))
    assert "wait-1" in eyes.spoken and "wait-1" not in eyes.judged
    eyes.changed(gpujob("wait-1", reason="WaitingForGPU"))
    assert "wait-1" in eyes.judged
    assert eyes.by_reason("wait") == {"WaitingForGPU": 1}


def test_a_verdict_keeps_the_time_at_which_it_came_first() -> None:
    eyes = JobEyes()
    eyes.changed(gpujob("wait-1", reason="WaitingForGPU"))
    first = dict(eyes.judged)
    eyes.changed(gpujob("wait-1", reason="Starting"))
    eyes.changed(gpujob("wait-1", phase="Running"))
    assert eyes.judged == first


def test_jobs_that_are_there_are_counted_by_the_first_part_of_their_name() -> None:
    eyes = JobEyes()
    for name in ("wait-1", "wait-2", "fill-0", "wait-1"):
        eyes.changed(gpujob(name))
    eyes.gone("", "wait-2", "")
    assert eyes.present == {"wait": 1, "fill": 1}


def test_a_pod_without_a_node_waits_until_it_is_bound_or_gone() -> None:
    eyes = PodEyes()
    for uid in ("a", "b", "c"):
        eyes.changed(pod(uid))
    eyes.changed(pod("a", node="n"))
    eyes.gone("", "b", "b")
    assert (eyes.made["wait"], eyes.bound["wait"], eyes.unbound["wait"]) == (3, 1, 1)
    assert len(eyes.bound_at("wait")) == 1


def test_a_pod_ends_once() -> None:
    eyes = PodEyes()
    eyes.changed(pod("a", node="n", phase="Succeeded"))
    ended = eyes.spans["a"].ended
    eyes.gone("", "a", "a")
    assert ended is not None and eyes.spans["a"].ended == ended
    assert eyes.unbound["wait"] == 0
