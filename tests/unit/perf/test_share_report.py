"""What pods that ask cost is told as differences and ratios within a round."""

import pytest
from tests.perf import admission, share_report


def run(variant: str, number: int, rate: float, api_server: float) -> dict[str, object]:
    cpu = {"kube-apiserver": api_server, "operator": 0.4}
    return {
        "variant": variant,
        "round": number,
        "pods": 400,
        "pods_per_second": rate,
        "seconds": 400 / rate,
        "created_seconds": 300 / rate,
        "cpu_seconds": cpu,
    }


def test_a_deployments_pods_are_compared_with_a_jobs_within_a_round() -> None:
    runs = [
        *(run("bind-cap", n, rate, 2.0) for n, rate in enumerate((100, 300, 200))),
        *(run("share", n, rate, 3.0) for n, rate in enumerate((90, 240, 220))),
    ]
    lines = share_report.deployments(runs).splitlines()
    assert lines[-1] == (
        "| share : bind-cap | 0.90 (0.80–1.10) | 0.75 | 7.50 | 2.50 | 1.00 | 0.00 |"
    )
    assert len([line for line in lines if " : " in line]) == 1, "no pair that did not run"


def test_without_a_pair_nothing_is_told() -> None:
    assert share_report.deployments([run("share", 0, 90, 3.0)]) == ""
    assert share_report.deployments([run("share", 0, 90, 3.0), run("bind", 1, 90, 3.0)]) == ""


def test_what_a_policy_adds_is_the_difference_within_a_round() -> None:
    rounds = (
        {"plain": (2.0, 2.2), "asking": (2.1, 5.0), "made ours": (2.9,)},
        {"plain": (4.0, 4.1), "asking": (4.1, 7.5), "made ours": (5.1,)},
        {"plain": (2.0, 2.4), "asking": (2.1, 5.2), "made ours": (2.8,)},
    )
    runs = [
        {"case": f"{pod}, {word} policies", "round": number, "ms": ms}
        | {"evaluations": 2.0 if (pod, word) == ("asking", "with") else 0.0}
        for number, pods in enumerate(rounds)
        for pod, figures in pods.items()
        for word, ms in zip(("without", "with"), figures, strict=False)
    ]
    found = share_report.added(runs)
    assert found["plain, added"] == pytest.approx({"median": 0.2, "min": 0.1, "max": 0.4})
    assert found["asking, added"]["median"] == pytest.approx(3.1)
    assert found["of that the larger pod's own"]["median"] == pytest.approx(0.8)
    assert found["of that the policies'"]["median"] == pytest.approx(2.4)
    page = share_report.admission({"runs": runs}, 600)
    assert "3 rounds of 600 dry runs" in page
    assert "| plain, added | 0.20 (0.10–0.40) |  |" in page
    assert "| asking, with policies | 5.20 (5.00–7.50) | 2.00 |" in page


def test_evaluations_are_those_of_the_policy_that_makes_pods_ours() -> None:
    name = "apiserver_mutating_admission_policy_check_total"
    metrics = f"""\
# TYPE {name} counter
{name}{{error_type="no_error",policy="gpu-scheduler-shares",policy_binding="a"}} 1200
{name}{{error_type="other",policy="gpu-scheduler-shares",policy_binding="a"}} 3
{name}{{error_type="no_error",policy="another",policy_binding="a"}} 50
"""
    assert admission.evaluations(metrics) == 1203
    assert admission.evaluations("") == 0
