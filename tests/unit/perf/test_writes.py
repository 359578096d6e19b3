from tests.perf.writes import by_kind, counted, parse

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 800
apiserver_request_total{code="201",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="201",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 799
apiserver_request_total{code="409",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 1e+00
apiserver_request_total{code="200",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 12
apiserver_request_total{code="200",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 900
apiserver_request_total{code="200",dry_run="",group="",resource="nodes",scope="resource",subresource="status",verb="PATCH",version="v1"} 30
apiserver_request_total{code="200",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 9
apiserver_request_total{code="201",dry_run="",group="authorization.k8s.io",resource="subjectaccessreviews",scope="resource",subresource="",verb="POST",version="v1"} 5
apiserver_request_total{code="200",dry_run="",group="gpu-scheduler.io",resource="gpujobs",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 7
apiserver_request_total{code="201",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 3
apiserver_request_duration_seconds_sum{resource="pods",verb="POST"} 4
"""  # noqa: E501


def test_refused_writes_and_dry_runs_count_and_reads_and_reviews_do_not() -> None:
    assert parse(METRICS) == {
        "POST pods": 801,
        "POST pods/binding": 800,
        "PATCH pods/status": 900,
        "PATCH nodes/status": 30,
        "PUT leases": 9,
        "PATCH gpujobs/status": 7,
        "POST events": 3,
    }


def test_heartbeats_and_the_kubelets_status_are_left_out() -> None:
    assert counted(parse(METRICS)) == {
        "POST pods": 801,
        "POST pods/binding": 800,
        "PATCH gpujobs/status": 7,
        "POST events": 3,
    }


def test_the_three_sums_hold_every_counted_write() -> None:
    writes = counted(parse(METRICS))
    assert by_kind(writes) == {"pods": 1601, "events": 3, "jobs_and_projects": 7}
    assert sum(by_kind(writes).values()) == sum(writes.values())
