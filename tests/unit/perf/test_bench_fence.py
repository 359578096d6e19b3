"""Figures of the fence are read off the API server's histograms and compared within a round."""

from tests.perf.bench_fence import histograms, mean_ms, summary

METRICS = """\
# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{resource="pods",subresource="binding",verb="POST",le="1"} 3
apiserver_request_duration_seconds_sum{dry_run="",resource="pods",subresource="binding",verb="POST"} 0.5
apiserver_request_duration_seconds_count{dry_run="",resource="pods",subresource="binding",verb="POST"} 100
apiserver_request_duration_seconds_sum{dry_run="",resource="pods",subresource="",verb="PATCH"} 2
apiserver_request_duration_seconds_count{dry_run="",resource="pods",subresource="",verb="PATCH"} 10
apiserver_request_duration_seconds_sum{dry_run="All",resource="pods",subresource="",verb="PATCH"} 9
apiserver_request_duration_seconds_sum{dry_run="",resource="nodes",subresource="",verb="PATCH"} 9
apiserver_validating_admission_policy_check_duration_seconds_sum{policy="gpu-scheduler-term",policy_binding="a"} 0.02
apiserver_validating_admission_policy_check_duration_seconds_sum{policy="other",policy_binding="a"} 7
apiserver_validating_admission_policy_check_duration_seconds_count{policy="gpu-scheduler-term",policy_binding="a"} 40
"""  # noqa: E501


def test_the_mean_is_of_what_happened_between_two_looks() -> None:
    after = histograms(METRICS)
    assert mean_ms({}, after, "request POST binding") == 5.0
    assert mean_ms({"request PATCH": (1.0, 5.0)}, after, "request PATCH") == 200.0
    assert mean_ms({}, after, "policy") == 0.5
    assert mean_ms(after, after, "policy") is None


def test_rates_are_compared_within_a_round() -> None:
    runs = [
        {"path": "bind", "round": n, "fenced": fenced, "pods_per_second": rate}
        | {"placing_request_ms": 1.0, "policy_ms": 0.5 if fenced else None}
        for n, rates in enumerate([(90.0, 100.0), (40.0, 50.0), (99.0, 100.0)])
        for fenced, rate in zip((True, False), rates, strict=True)
    ]
    found = summary(runs, "bind")
    assert (found["ratio_least"], found["ratio"], found["ratio_most"]) == (0.8, 0.9, 0.99)
    assert found["pods_per_second_with"] == 90.0
    assert found["policy_ms_without"] is None
