"""``kubectl gpu list``: the server's columns, other workloads, watches, narrow terminals."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import Result
from tests.unit.cli.objects import Json, asks, holds, job, pod, waits
from tests.unit.cli.server import Request, Server, serving

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.cli.lists.job_table import Columns, age
from gpu_scheduler.cli.lists.listed import Listed
from gpu_scheduler.cli.lists.share_rows import reason_of, workloads
from gpu_scheduler.cli.lists.watch import follow
from gpu_scheduler.cli.printed_table import PrintedTable, broken, fitted
from gpu_scheduler.cli.where import ClusterOptions
from gpu_scheduler.simulate.verdict import of_pod

GROUP = "/apis/gpu-scheduler.io/v1alpha1"
JOBS, PODS = f"{GROUP}/namespaces/team-a/gpujobs", "/api/v1/namespaces/team-a/pods"
COLUMNS = [
    ("Name", 0),
    ("PROJECT", 0),
    ("STATUS", 0),
    ("GPU(alloc/req)", 0),
    ("PODS(run/done/total)", 0),
    ("REASON", 0),
    ("NODE", 0),
    ("SECRET", 1),
    ("AGE", 0),
]


def row(
    name: str, status: str = "Running", reason: str = "", *, version: str = "2", node: str = "n1"
) -> Json:
    cells = [name, "vision", status, "0.5/0.5", "1/0/1", reason, node, "wide", "5m"]
    meta = {"name": name, "namespace": "team-a", "resourceVersion": version}
    return {"cells": cells, "object": {"metadata": meta}}


def table(*rows: Json, more: str = "", columns: bool = True) -> Json:
    defined = [{"name": name, "priority": priority} for name, priority in COLUMNS]
    meta = {"resourceVersion": "1"} | ({"continue": more} if more else {})
    return {"kind": "Table", "metadata": meta, "rows": list(rows)} | (
        {"columnDefinitions": defined} if columns else {}
    )


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({f"GET {JOBS}": table(), f"GET {PODS}": {"items": [], "metadata": {}}}) as made:
        yield made


@pytest.fixture
def call(server: Server, tmp_path: Path) -> Any:
    return server.caller(tmp_path, "list")


def lines(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_the_servers_columns_are_shown_those_of_lower_priority_on_demand(
    call: Any, server: Server
) -> None:
    server.answers[f"GET {JOBS}"] = table(row("a"), row("b"))
    heading, first, second = lines(call())
    assert heading == [
        "NAME",
        "PROJECT",
        "STATUS",
        "GPU(alloc/req)",
        "PODS(run/done/total)",
        "REASON",
        "NODE",
        "AGE",
    ]
    assert (first[0], second[0]) == ("a", "b") and "wide" not in first
    assert "wide" in lines(call("-o", "wide"))[1]
    assert len(lines(call("--no-headers"))) == 2


def test_nothing_is_no_error_and_says_where(call: Any) -> None:
    result = call()
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No jobs in namespace team-a.\n"


def test_all_pages_are_read(call: Any, server: Server) -> None:
    def page(request: Request) -> Json:
        return (
            table(row("b"))
            if request.params.get("continue") == "next"
            else table(row("a"), more="next")
        )

    server.answers[f"GET {JOBS}"] = page
    assert [line[0] for line in lines(call("--no-headers"))] == ["a", "b"]


def pods_of(server: Server, left: Json, status: str) -> list[str]:
    """A namespace with this pod of a GPUJob; what was asked for beside its line of the Table."""
    asked = list[str]()

    def pods(request: Request) -> Json:
        if "as=Table" in request.accept:
            names = [{"name": "Name"}, {"name": "Status"}]
            return {"columnDefinitions": names, "rows": [{"cells": ["train-0-x", status]}]}
        asked.append(request.params["labelSelector"])
        return {"items": [left] if asked[-1] == LABEL_JOB else []}

    server.answers[f"GET {PODS}"] = pods
    return asked


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        ([], True),
        ([row("other")], True),
        ([row("train", status="Pending")], True),  # whose Job somebody took away
        ([row("train", status="Running")], False),  # it runs, as it says: no pod is read
    ],
)
def test_a_pod_that_runs_on_as_nobodys_has_a_line(
    call: Any, server: Server, jobs: list[Json], found: bool
) -> None:
    said = "no GPUJob owns this pod any more: kubectl delete pod -n team-a train-0-x"
    left = pod("train-0-x", labels={LABEL_JOB: "train"}, annotations=holds("n1", g=[500, 1024]))
    owned = {"type": "gpu-scheduler.io/Owned", "status": "False", "message": said}
    left["status"] = {"phase": "Running", "conditions": ["odd", {}, owned]}
    asked = pods_of(server, left, "Running")
    server.answers[f"GET {JOBS}"] = table(*jobs)
    result = call("--no-headers")
    assert (LABEL_JOB in asked) is found
    there = [line[:5] for line in lines(result) if line[0].startswith("pod/")]
    assert there == [["pod/train-0-x", "Running", "0.5/0.5", "OwnerGone", "n1"]] * found
    assert (said in " ".join(result.stderr.split())) is found
    left["status"]["conditions"] = [owned | {"status": "True"}]
    assert "pod/train-0-x" not in call("--no-headers").output


@pytest.mark.parametrize("status", ["Pending", "SchedulingGated", "Completed", "Error"])
def test_a_pod_that_holds_nothing_is_not_read(call: Any, server: Server, status: str) -> None:
    asked = pods_of(server, {}, status)
    server.answers[f"GET {JOBS}"] = table(row("other"))
    call()
    assert LABEL_JOB not in asked


@pytest.mark.parametrize("status", ["Terminating", "Unknown", "Running"])
def test_a_pod_that_outlives_its_job_has_a_line_until_it_is_gone(
    call: Any, server: Server, status: str
) -> None:
    left = pod("train-0-x", labels={LABEL_JOB: "train"}, annotations=holds("n1", g=[500, 1024]))
    left["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T01:10:00Z",
        "deletionGracePeriodSeconds": 600,
    }
    asked = pods_of(server, left, status)
    server.answers[f"GET {JOBS}"] = table(row("train" if status == "Running" else "other"))
    result = call("--no-headers")
    if status == "Running":  # nothing is ending, and no pod is read
        assert [line[0] for line in lines(result)] == ["train"] and LABEL_JOB not in asked
        return
    (_, line) = lines(result)
    assert line[:5] == ["pod/train-0-x", "Terminating", "0.5/0.5", "JobDeleted", "n1"]
    assert "terminating since 2026-01-01T01:00:00Z: its GPUJob train is deleted" in result.stderr
    server.answers[f"GET {JOBS}/train"] = {
        "metadata": {"creationTimestamp": "2025-12-31T00:00:00Z"}
    }
    assert [line[0] for line in lines(call("--no-headers"))] == ["other"], "it says so itself"


def test_other_workloads_stand_in_the_same_columns(call: Any, server: Server) -> None:
    half = asks("0:gpu-scheduler.io/gpu=0.5")
    tags = {"pod-template-hash": "5d4f8"}
    server.answers[f"GET {JOBS}"] = table(row("a"))
    server.answers[f"GET {PODS}"] = {
        "items": [
            pod(
                "s-1",
                labels=tags,
                owner=("ReplicaSet", "server-5d4f8"),
                nodeName="n1",
                annotations=half | holds("n1", **{"GPU-a": [500, 1024]}),
            ),
            pod(
                "s-2",
                "Pending",
                labels=tags,
                owner=("ReplicaSet", "server-5d4f8"),
                annotations=half,
                conditions=[waits("Unschedulable")],
            ),
            pod(
                "n",
                "Succeeded",
                annotations=asks("0:gpu-scheduler.io/gpu-memory=8Gi"),
                restartPolicy="Never",
            ),
        ]
    }
    server.answers[f"GET {GROUP}/gpuprojects"] = {
        "items": [{"metadata": {"name": "vision"}, "spec": {"namespaces": ["team-a"]}}]
    }
    found = lines(call("--no-headers"))
    assert found[1][:7] == [
        "deploy/server",
        "vision",
        "Running",
        "0.5/1",
        "1/0/2",
        "Unschedulable",
        "n1",
    ]
    assert found[2][:5] == ["pod/n", "vision", "Succeeded", "0/0", "0/1/1"]
    selectors = [r.params.get("labelSelector") for r in server.requests if r.path == PODS]
    assert selectors == [LABEL_JOB, "gpu-scheduler.io/share"], "the first as the server's Table"


def test_who_may_not_see_projects_sees_the_rest(call: Any, server: Server) -> None:
    server.answers[f"GET {PODS}"] = {"items": [pod("n")]}
    server.answers[f"GET {GROUP}/gpuprojects"] = 403
    assert lines(call("--no-headers"))[0][:2] == ["pod/n", "Running"]


def test_who_may_not_see_pods_is_told_and_sees_the_jobs(call: Any, server: Server) -> None:
    server.answers |= {f"GET {JOBS}": table(row("a")), f"GET {PODS}": 403}
    result = call("--no-headers")
    assert [line[0] for line in lines(result)] == ["a"]
    assert result.stderr == "You may not list pods in namespace team-a: GPUJobs alone are shown.\n"


def test_by_status_and_labels(call: Any, server: Server) -> None:
    server.answers[f"GET {JOBS}"] = table(row("a"), row("b", "Pending"), row("c", "Failed"))
    server.answers[f"GET {PODS}"] = {"items": [pod("n")]}
    assert [line[0] for line in lines(call("--no-headers", "--status", "pending,FAILED"))] == [
        "b",
        "c",
    ]
    server.requests.clear()
    call("-l", "team=a")
    said = {r.path: r.params.get("labelSelector") for r in server.requests}
    assert (said[JOBS], said[PODS]) == ("team=a", "gpu-scheduler.io/share,team=a")


def test_a_project_is_all_of_its_namespaces(call: Any, server: Server) -> None:
    other = JOBS.replace("team-a", "team-b")
    server.answers[f"GET {GROUP}/gpuprojects/vision"] = {
        "spec": {"namespaces": ["team-a", "team-b"]}
    }
    server.answers[f"GET {JOBS}"] = table(row("a"))
    server.answers[f"GET {other}"] = table()
    server.answers[f"GET {PODS.replace('team-a', 'team-b')}"] = {"items": []}
    heading, first = lines(call("-p", "vision"))
    assert (heading[:2], first[:2]) == (["NAMESPACE", "NAME"], ["team-a", "a"])
    assert "none of project vision" in call("-p", "vision", "-n", "x").stderr
    assert call("-p", "nope").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["-w", "-o", "json"],
        ["--status", ""],
        ["--status", "Pending,"],
        ["-p", "\u00fc"],
        ["-n", "a/b"],
        ["-n", "\u00fc"],
        ["-p", ""],
        ["-o", "csv"],
        ["extra"],
    ],
)
def test_odd_words_are_refused(call: Any, arguments: list[str]) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_odd_answers_break_nothing(call: Any, server: Server) -> None:
    bare = {"cells": ["a", None, True, 1.5, 7]}
    server.answers[f"GET {JOBS}"] = table(bare, {"object": None}, {"cells": ["x"] * 20})
    server.answers[f"GET {PODS}"] = {
        "items": [
            {"metadata": {"name": "odd", "creationTimestamp": "no time"}},
            pod("p", annotations=asks("nonsense") | {"gpu-scheduler.io/allocation": "[]"}),
            pod("q", owner=("RayCluster", "ray")),
        ]
    }
    found = lines(call("--no-headers"))
    assert ["a", "true", "1.5", "7"] in found
    assert {line[0] for line in found if line} >= {"pod/odd", "pod/p", "raycluster/ray"}
    server.answers[f"GET {JOBS}"] = table(columns=False)
    assert lines(call())[0][0] == "NAME"


def test_objects_and_names(call: Any, server: Server) -> None:
    server.answers[f"GET {JOBS}"] = {
        "kind": "GPUJobList",
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "items": [job("a", "Running")],
    }
    server.answers[f"GET {PODS}"] = {"kind": "PodList", "apiVersion": "v1", "items": [pod("n")]}
    assert call("-o", "name").stdout == "gpujob.gpu-scheduler.io/a\npod/n\n"
    assert '"kind": "List"' in call("-o", "json").stdout
    assert call("-o", "name", "--status", "Pending").stdout == ""


class Enough(Exception):
    """Of a watch that has no end."""


def watched(server: Server, tmp_path: Path, count: int) -> list[str]:
    """The first lines of ``list -w``."""
    seen: list[str] = []

    def write(line: str) -> None:
        seen.append(line)
        if len(seen) == count:
            raise Enough

    where = ClusterOptions(kubeconfig=server.kubeconfig(tmp_path))
    with where.cluster() as cluster:
        listed = Listed(cluster.client, ["team-a"])
        columns, rows = listed.read()
        with pytest.raises(Enough):
            follow(listed, columns, rows, write, wide=False, headers=True)
    return [" ".join(line.split()) for line in seen]


def watch(server: Server, path: str, first: Any, *streams: Any) -> list[str]:
    """Answers a list, and then watches one by one; where each began is noted."""
    begun: list[str] = []
    left = list(streams)

    def answer(request: Request) -> Any:
        if "watch" not in request.params:
            return first() if callable(first) else first
        begun.append(request.params["resourceVersion"])
        if left:
            return left.pop(0)
        return [forever()] if len(begun) <= len(streams) + 1 else 403

    server.answers[f"GET {path}"] = answer
    return begun


def forever() -> Any:
    over = Event()
    return lambda: over.wait(5)


def event(kind: str, body: Json) -> Json:
    return {"type": kind, "object": body}


def test_a_watch_prints_what_changes_and_goes_on_where_the_list_ended(
    server: Server, tmp_path: Path
) -> None:
    changed = row("a", "Pending", "WaitingForGPU", version="3")
    begun = watch(
        server,
        JOBS,
        table(row("a")),
        [
            event("MODIFIED", table(row("a", version="2"))),
            event("MODIFIED", table(changed, columns=False)),
            event("DELETED", table(changed, columns=False)),
        ],
    )
    watch(server, PODS, {"items": [], "metadata": {"resourceVersion": "1"}})
    found = watched(server, tmp_path, 4)
    assert found[0].startswith("NAME PROJECT")
    assert found[1:] == [
        "a vision Running 0.5/0.5 1/0/1 n1 5m",
        "a vision Pending 0.5/0.5 1/0/1 WaitingForGPU n1 5m",
        "a vision Deleted 0.5/0.5 1/0/1 WaitingForGPU n1 5m",
    ]
    assert begun[0] == "1"


def test_a_watch_that_the_server_ends_is_opened_again_where_it_was(
    server: Server, tmp_path: Path
) -> None:
    begun = watch(
        server,
        JOBS,
        table(),
        [event("ADDED", table(row("a", version="7")))],
        [event("ADDED", table(row("b", version="8")))],
    )
    watch(server, PODS, {"items": [], "metadata": {"resourceVersion": "1"}})
    assert [line.split()[0] for line in watched(server, tmp_path, 3)] == ["NAME", "a", "b"]
    assert begun[:2] == ["1", "7"]


def test_a_watch_that_is_too_old_is_read_again_and_only_what_is_other_shown(
    server: Server, tmp_path: Path
) -> None:
    lists = [table(row("a"), row("b")), table(row("a"), row("b", "Failed"), row("c"))]
    gone = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})
    watch(server, JOBS, lambda: lists.pop(0) if len(lists) > 1 else lists[0], [gone])
    watch(server, PODS, {"items": [], "metadata": {"resourceVersion": "1"}})
    found = [line.split()[:3] for line in watched(server, tmp_path, 5)]
    assert found[1:] == [
        ["a", "vision", "Running"],
        ["b", "vision", "Running"],
        ["b", "vision", "Failed"],
        ["c", "vision", "Running"],
    ]


def test_pods_are_watched_as_the_workload_that_they_are_of(server: Server, tmp_path: Path) -> None:
    first, second = (
        pod("p1", owner=("StatefulSet", "web")),
        pod("p2", "Pending", owner=("StatefulSet", "web")),
    )
    watch(server, JOBS, table())
    watch(
        server,
        PODS,
        {"items": [first], "metadata": {"resourceVersion": "1"}},
        [
            event("MODIFIED", first),
            event("ADDED", second),
            event("DELETED", second),
            event("DELETED", first),
        ],
    )
    server.answers[f"GET {GROUP}/gpuprojects"] = {"items": []}
    found = [line.split() for line in watched(server, tmp_path, 5)][1:]
    assert [(line[0], line[1], line[3]) for line in found] == [
        ("sts/web", "Running", "1/0/1"),
        ("sts/web", "Running", "1/0/2"),
        ("sts/web", "Running", "1/0/1"),
        ("sts/web", "Deleted", "1/0/1"),
    ]


def test_pods_of_one_owner_are_one_workload() -> None:
    pods = [pod("a", owner=("Job", "j")), pod("b", owner=("Job", "j")), pod("c")]
    assert [(k, len(w.pods)) for k, w in workloads(pods).items()] == [
        (("team-a", "job/j"), 2),
        (("team-a", "pod/c"), 1),
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (125, "2m5s"),
        (3600, "60m"),
        (4 * 3600 + 60, "4h1m"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: int, words: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_an_age_that_cannot_be_read() -> None:
    assert age("", datetime.now(UTC)) == "<unknown>"


def wide_table() -> PrintedTable:
    heading = Columns(
        (
            "NAME",
            "PROJECT",
            "TYPE",
            "STATUS",
            "GPU(alloc/req)",
            "PODS(run/done/total)",
            "BEST",
            "REASON",
            "NODE",
            "AGE",
        )
    ).heading()
    return PrintedTable(
        heading,
        [
            [
                "notebook",
                "vision",
                "interactive",
                "Pending",
                "0.5/0.5",
                "1/0/1",
                "",
                "WaitingForResources",
                "r7525-0",
                "2m41s",
            ]
        ],
    )


def width(table: PrintedTable) -> int:
    cells = [table.columns, *table.rows]
    each = [
        max(len(line) for r in cells for line in r[i].split("\n"))
        for i in range(len(table.columns))
    ]
    return sum(each) + 2 * (len(each) - 1)


def test_a_table_that_fits_stays_as_it_is() -> None:
    assert fitted(wide_table(), 160).columns == wide_table().columns


@pytest.mark.parametrize("columns", [100, 80, 70])
def test_a_table_is_made_to_fit_without_cutting_a_cell(columns: int) -> None:
    found = fitted(wide_table(), columns)
    assert width(found) <= columns
    whole = {cell.replace("\n", "") for cell in found.rows[0]}
    assert {"notebook", "Pending", "0.5/0.5", "1/0/1", "WaitingForResources", "r7525-0"} <= whole


def test_at_100_columns_a_reason_is_one_word() -> None:
    assert "WaitingForResources" in fitted(wide_table(), 100).rows[0]


def test_a_long_reason_is_broken_before_a_column_is_left_out() -> None:
    found = fitted(wide_table(), 85)
    assert "TYPE" in found.columns and "WaitingFor\nResources" in found.rows[0]
    assert "TYPE" not in fitted(wide_table(), 75).columns


def test_wide_leaves_no_column_out() -> None:
    assert len(fitted(wide_table(), 60, all_columns=True).columns) == 10


@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ("WaitingForGPU", 8, "Waiting\nForGPU"),
        ("dell-2 +3 more", 8, "dell-2\n+3 more"),
        ("a-b", 1, "a-\nb"),
        ("", 3, ""),
        ("abcdef", 3, "abcdef"),
    ],
)
def test_words_are_broken_where_their_parts_meet(text: str, most: int, found: str) -> None:
    assert broken(text, most) == found


def test_the_reason_is_the_operators_word_as_in_why() -> None:
    """Autoscalers look for Unschedulable; the word that counts begins the message."""
    told = waits("Unschedulable", "WaitingForGPU: needs 0.5 of a GPU")
    assert reason_of(pod("p", "Pending", conditions=[told])) == "WaitingForGPU"
    assert of_pod(pod("p", "Pending", conditions=[told]))["reason"] == "WaitingForGPU"
    theirs = waits("Unschedulable", "0/4 nodes are available")
    assert reason_of(pod("p", "Pending", conditions=[theirs])) == "Unschedulable"
