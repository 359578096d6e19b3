"""The sentence that opens each page, in the states that a cluster can be in."""

from typing import Any

import pytest
from tests.unit.dashboard import rows
from tests.unit.dashboard.rows import HOUR, NOW, parts, picture

from gpu_scheduler.dashboard.content import device, gpus, jobs, overview, projects, queue, sweeps
from gpu_scheduler.dashboard.content.job_lead import lead as job_lead
from gpu_scheduler.dashboard.content.words import text
from gpu_scheduler.dashboard.picture import JobDetail
from gpu_scheduler.dashboard.rows import Lead, Ranked, Step, Used
from gpu_scheduler.dashboard.visible import ALL, Visible

OWN = Visible(frozenset({"team-a"}), inventory=False)
NODES = (rows.node("a", rows.device(rows.share())), rows.node("b", rows.device()))


def said(lead: Lead) -> str:
    return f"{text(lead.first)} | {text(lead.then)}"


def of_overview(visible: Visible = ALL, **known: Any) -> str:
    return said(overview.page(picture(**known), visible, {}).lead)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, "No node of this cluster has GPUs that can be seen. | There is no work yet."),
        (
            {"nodes": NODES, "parts": parts(free=2)},
            "None of 2 GPUs is allocated. | There is no work yet.",
        ),
        (
            {"nodes": NODES[:1], "parts": parts(busy=0.3, part_unused=0.2, free=0.5),
             "works": (rows.job(),)},
            "0.5 of 1 GPU is allocated, 0.3 is busy. | Nothing waits.",
        ),
        (
            {"nodes": NODES, "parts": parts(busy=1, free=1), "works": (rows.job(),)},
            "1 of 2 GPUs is allocated, 1 is busy. | Nothing waits.",
        ),
        (
            {"nodes": NODES, "parts": parts(busy=19, part_unused=7.9, idle=4.5, free=8.6),
             "works": (rows.job(),), "idle": tuple(rows.idle(f"n{n}") for n in range(3)),
             "queue": (*(rows.queued(f"q{n}") for n in range(7)),
                       *(rows.queued(f"f{n}", reason="Fragmented") for n in range(5)))},
            "31.4 of 40 GPUs are allocated, 19 are busy. 4.5 are held idle by three notebooks. | "
            "Twelve jobs of vision wait; seven of them say WaitingForQuota.",
        ),
        (
            {"nodes": NODES, "parts": parts(idle=1, free=1), "works": (rows.job(),),
             "idle": (rows.idle(type="training"),), "queue": (rows.queued(),)},
            "1 of 2 GPUs is allocated, none is busy. 1 is held idle by one workload. | "
            "One job of vision waits: WaitingForQuota.",
        ),
        (
            {"nodes": NODES, "parts": parts(unknown=1.5, free=0.5), "works": (rows.job(),),
             "followed": False},
            "1.5 of 2 GPUs are allocated; nobody asks the nodes what they do with them. | "
            "Nothing waits.",
        ),
        (
            {"nodes": NODES, "parts": parts(unknown=1.5, free=0.5), "works": (rows.job(),),
             "silent_agents": 2},
            "1.5 of 2 GPUs are allocated; what they do is not known. | "
            "Nothing waits. Two agents do not answer.",
        ),
        (
            {"nodes": NODES, "parts": parts(busy=1, unknown=0.5, free=0.5), "works": (rows.job(),),
             "silent_agents": 1},
            "1.5 of 2 GPUs are allocated, 1 is busy; of 0.5 nobody knows. | "
            "Nothing waits. One agent does not answer.",
        ),
        (
            {"nodes": NODES, "parts": parts(closed=2), "works": (rows.job(),)},
            "None of 2 GPUs is allocated. | Nothing waits.",
        ),
        (
            {"nodes": NODES, "parts": parts(busy=2), "works": (rows.job(),),
             "queue": tuple(rows.queued(f"q{n}", project=f"p{n}") for n in range(14))},
            "2 of 2 GPUs are allocated, 2 are busy. | 14 jobs wait: WaitingForQuota.",
        ),
    ],
)  # fmt: skip
def test_the_overview(known: dict[str, Any], expected: str) -> None:
    assert of_overview(**known) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, "Your work holds no GPU. | There is no work yet."),
        (
            {"nodes": NODES, "parts": parts(busy=9), "works": (rows.job(),)},
            "Your work holds 0.5 GPUs, 0.3 is busy. | Nothing waits.",
        ),
        (
            {"works": (rows.job(namespace="team-b"),),
             "queue": (rows.queued(namespace="team-b"),), "silent_agents": 3},
            "Your work holds no GPU. | There is no work yet.",
        ),
    ],
)  # fmt: skip
def test_the_overview_of_one_who_sees_own_work_alone(known: dict[str, Any], expected: str) -> None:
    assert of_overview(OWN, **known) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {},
            "No node of this cluster has GPUs that can be seen: neither an agent nor GPU feature "
            "discovery's labels tell of one. | ",
        ),
        (
            {"nodes": NODES, "parts": parts(busy=0.3)},
            "0.3 of 2 GPUs is busy on two nodes. | One whole GPU is free, it is on b.",
        ),
        (
            {"nodes": NODES[:1], "parts": parts(busy=0.3)},
            "0.3 of 1 GPU is busy on one node. | Most room in one piece: 0.5 on a.",
        ),
        (
            {"nodes": (rows.node("a", rows.device(rows.share(gpus=1.0))),), "parts": parts(busy=1)},
            "1 of 1 GPU is busy on one node. | No GPU has room.",
        ),
        (
            {"nodes": (rows.node("a", rows.device(), closed="is cordoned"),)},
            "None of 1 GPU is busy on one node. | None of them takes new pods. a is cordoned.",
        ),
        (
            {"nodes": (*NODES, rows.node("c", rows.device(), rows.device()),
                       rows.node("d", rows.device(), closed="is cordoned")), "followed": False},
            "5 GPUs on four nodes; nobody asks the nodes what they do. | "
            "Three whole GPUs are free, most of them on c. d is cordoned.",
        ),
        (
            {"nodes": (rows.node("a", rows.device(), rows.device()),
                       rows.node("b", rows.device(), rows.device())), "parts": parts(busy=0.0)},
            "None of 4 GPUs is busy on two nodes. | Four whole GPUs are free, two of them on a.",
        ),
        (
            {"nodes": (rows.node("a", rows.device(), rows.device()),), "parts": parts(busy=0.0)},
            "None of 2 GPUs is busy on one node. | Two whole GPUs are free, all of them on a.",
        ),
    ],
)  # fmt: skip
def test_the_page_of_gpus(known: dict[str, Any], expected: str) -> None:
    assert said(gpus.page(picture(**known), ALL, {}).lead) == expected


HOT = rows.health(slowed=("heat", "a limit of its power"))


@pytest.mark.parametrize(
    ("shares", "known", "closed", "health", "expected"),
    [
        ((), {}, "", None, "GPU 0 of a is held by nobody. | "),
        ((0.5,), {}, "", None, "0.5 of GPU 0 of a is held; it is used 30 % of the time. | "),
        ((0.5, 0.5), {"busy": None}, "", rows.health(),
         "All of GPU 0 of a is held; what it does is not known. | "),
        ((1.0,), {"busy": 1.0}, "", HOT,
         "All of GPU 0 of a is held; it is used 100 % of the time. | "
         "It runs below its clocks: heat and a limit of its power."),
        ((), {"problem": "XID 79"}, "is cordoned", HOT,
         "GPU 0 of a is held by nobody. | It takes nobody: XID 79."),
        ((), {}, "is cordoned", None,
         "GPU 0 of a is held by nobody. | It takes nobody: its node is cordoned."),
    ],
)  # fmt: skip
def test_a_device(
    shares: tuple[float, ...], known: dict[str, Any], closed: str, health: Any, expected: str
) -> None:
    one = rows.device(*(rows.share(gpus=each) for each in shares), **known)
    assert said(device.lead(rows.node("a", one, closed=closed), one, health)) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), "Nothing waits. | "),
        ((rows.queued(),), "One job waits, for 10 min. | Next is next of vision."),
        (
            (rows.queued(mends=True),),
            "One job waits, for 10 min. | It cannot start before somebody changes something.",
        ),
        (
            (rows.queued(), rows.queued("b", since=NOW - 2 * HOUR), rows.queued("c", mends=True)),
            "Three jobs wait, half of them for no longer than 10 min. | "
            "Next is next of vision. One of them cannot start before somebody changes something.",
        ),
        (
            tuple(rows.queued(f"q{n}", project="") for n in range(1200)),
            "1,200 jobs wait, half of them for no longer than 10 min. | Next is q0.",
        ),
    ],
)
def test_the_queue(found: tuple[Any, ...], expected: str) -> None:
    assert said(queue.page(picture(queue=found), ALL, {}).lead) == expected


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ((), "There is no work yet. | "),
        (("Running",), "1 runs. | "),
        (("Running", "Running", "Pending"), "2 run, 1 waits. | "),
        (("Suspended",), "1 is suspended. | "),
        (
            ("Succeeded", "Failed", "Failed"),
            "Nothing runs, and nothing waits. | One job succeeded and two jobs failed.",
        ),
        (("Pending", "Suspended", "Suspended", "Succeeded"),
         "1 waits, 2 are suspended. | One job succeeded."),
    ],
)  # fmt: skip
def test_the_list_of_jobs(phases: tuple[str, ...], expected: str) -> None:
    works = tuple(rows.job(f"j{n}", phase=phase) for n, phase in enumerate(phases))
    assert said(jobs.page(picture(works=works), ALL, {}).lead) == expected


def detail(**known: Any) -> JobDetail:
    nothing: dict[str, Any] = {
        "facts": (), "steps": (), "steps_note": "", "placed": (), "slowest": None, "curve": None,
        "ranks": None, "used": None, "may_suspend": True, "suspended": False,
    }  # fmt: skip
    return JobDetail(**nothing | known)


USED = Used(
    gpu_hours=3.25, used_gpu_hours=None, idle_gpu_hours=None, mean=0.4, p50=0.4, p95=0.6,
    peak_mib=1, cap_mib=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "known", "expected"),
    [
        (
            rows.job(),
            {"placed": (rows.placed(),),
             "steps": (Step(at=NOW - 1140, kind="placed", words="Placed"),)},
            "train runs on 0.5 of GPU 3 of a for 1 h, and is 28 % busy. | It waited 41 min.",
        ),
        (
            rows.job(busy=0.0, idle_since=NOW - 2 * HOUR, held=1.0),
            {"placed": (rows.placed(gpus=1.0),)},
            "train runs on GPU 3 of a for 1 h; it has done nothing there for 2 h. | ",
        ),
        (
            rows.job(busy=None, held=8.0),
            {"placed": (rows.placed(devices=(0, 1), gpus=2.0),
                        rows.placed("train-1", node="b", gpus=6.0))},
            "train runs on 8 GPUs of a and b for 1 h; how busy is not known. | ",
        ),
        (
            rows.job(phase="Pending", held=0.0, reason="WaitingForQuota", message="its quota is 0"),
            {},
            "train has waited 10 min for 0.5 GPUs, as number 1 of vision. | "
            "WaitingForQuota: its quota is 0.",
        ),
        (rows.job(phase="Suspended", held=0.0), {}, "train is suspended. | "),
        (
            rows.job(phase="Succeeded", held=0.0, ended=NOW - 26 * HOUR),
            {"used": USED},
            "train succeeded 1 d 2 h ago. | It held 3.25 GPU-hours, 40 % of the time busy.",
        ),
        (
            rows.job(phase="Failed", held=0.0, message="trial 3 failed: exit code 1"),
            {},
            "train failed. | trial 3 failed: exit code 1",
        ),
    ],
)  # fmt: skip
def test_a_job(row: Any, known: dict[str, Any], expected: str) -> None:
    waits = rows.queued() if row.phase == "Pending" else None
    assert said(job_lead(row, detail(**known), waits, NOW)) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            (),
            "There is no project that you may see. | "
            "A GPUProject gives namespaces a quota of GPUs.",
        ),
        ((rows.project(),), "One project holds 2 GPUs of 4 guaranteed. | Nobody borrows."),
        (
            (rows.project(quota=0.0, held=1.0, borrowed=1.0, borrowed_since=NOW - 5 * HOUR),),
            "One project holds 1 GPU of 0 guaranteed. | vision has borrowed 1 for 5 h.",
        ),
        (
            (rows.project(held=5.5, borrowed=1.5), rows.project("speech", borrowed=1.0, held=5.0),
             rows.project("fold", pending=2.0, held=1.0)),
            "Three projects hold 11.5 GPUs of 12 guaranteed. | "
            "vision borrows 1.5, and one other project too. "
            "fold waits, and holds less than its quota.",
        ),
    ],
)  # fmt: skip
def test_the_projects(found: tuple[Any, ...], expected: str) -> None:
    assert said(projects.page(picture(projects=found), ALL, {}).lead) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rows.project(), "vision holds 2 of its quota of 4. | Nothing of it waits."),
        (
            rows.project(held=5.0, borrowed=1.0, limit=6.0, waiting=2, pending=1.5,
                         borrowed_since=NOW - HOUR),
            "vision holds 5 of its quota of 4, and may hold 6. | "
            "1 GPU has been borrowed for 1 h. Two jobs wait for 1.5 GPUs.",
        ),
        (
            rows.project(problem="spec.quota: -1 is below 0"),
            "vision cannot be used: spec.quota: -1 is below 0 | Nothing of it waits.",
        ),
    ],
)  # fmt: skip
def test_a_project(row: Any, expected: str) -> None:
    page = projects.one(picture(projects=(row,)), ALL, {"name": "vision"})
    assert page is not None
    assert said(page.lead) == expected


@pytest.mark.parametrize(
    ("waiting", "pending", "mended", "expected"),
    [
        (1, 0.0, 1, "One job waits, and cannot start before somebody changes something."),
        (2, 0.0, 2, "Two jobs wait, and cannot start before somebody changes something."),
        (
            3,
            1.0,
            1,
            "Three jobs wait for 1 GPU; one of them cannot start before somebody changes"
            " something.",
        ),
    ],
)
def test_of_a_project_what_has_to_be_mended_is_told_apart(
    waiting: int, pending: float, mended: int, expected: str
) -> None:
    row = rows.project(waiting=waiting, pending=pending)
    queue = tuple(rows.queued(str(n), mends=n < mended) for n in range(waiting))
    page = projects.one(picture(projects=(row,), queue=queue), ALL, {"name": "vision"})
    assert page is not None
    assert text(page.lead.then) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            (),
            "There is no sweep yet. | A GPUJob with spec.sweep searches for the best parameters.",
        ),
        ((rows.sweep(),), "One sweep runs, with four trials on GPUs. | "),
        ((rows.sweep(phase="Succeeded"),), "The sweep does not run. | "),
        (
            (rows.sweep(phase="Succeeded"), rows.sweep("b", phase="Failed")),
            "None of two sweeps runs. | ",
        ),
    ],
)
def test_the_sweeps(found: tuple[Any, ...], expected: str) -> None:
    assert said(sweeps.page(picture(sweeps=found), ALL, {}).lead) == expected


def test_a_sweep() -> None:
    best = Ranked(trial=3, value=0.125, parameters={"lr": "0.1"})
    assert said(sweeps.lead_of(rows.sweep())) == (
        "search has so far ended 6 of 20 trials. | None has a result yet."
    )
    assert said(sweeps.lead_of(rows.sweep(best=best, phase="Succeeded"))) == (
        "search has ended 6 of 20 trials. | Best: trial 3 with loss 0.125."
    )
