"""The token of pods that report: who has one, where, and templates that are in its way."""

from typing import Any

import pytest
from tests.unit.jobs.golden_jobs import CAP, CASES, SWEEP, make_input

from gpu_scheduler.api.checkpoint import Checkpoint
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.jobs.conflicts import problems
from gpu_scheduler.jobs.render import render
from gpu_scheduler.jobs.report_token import reports
from gpu_scheduler.jobs.write_path import WritePath, choose

FOLDER = {"volume": {"hostPath": {"path": "/work"}}}
STOPPING = {**SWEEP, "earlyStopping": {"type": "median"}}
TWO = [{"name": "main", "image": "a"}, {"name": "other", "image": "a"}]
INITS = [{"name": "fetch", "image": "a"}]
TOKEN = {
    "name": "gpu-scheduler-token",
    "projected": {
        "sources": [
            {
                "serviceAccountToken": {
                    "audience": "gpu-scheduler.io/reports",
                    "expirationSeconds": 600,
                    "path": "token",
                }
            }
        ]
    },
}
PATH = "/var/run/secrets/gpu-scheduler.io"
MOUNT = {"name": "gpu-scheduler-token", "mountPath": PATH, "readOnly": True}
FILE = {"name": "GPUJOB_TOKEN_FILE", "value": f"{PATH}/token"}
REPORTING: dict[str, dict[str, Any]] = {
    "a checkpoint": {"image": "a", "gpu": 0.5, "checkpoint": FOLDER},
    "early stopping": {"image": "a", "gpu": 0.5, "completions": 2, "sweep": STOPPING},
    "a template": {
        "template": {"spec": {"containers": TWO, "initContainers": INITS}},
        "gpu": 0.5,
        "checkpoint": FOLDER,
    },
    "roles": {
        "image": "a",
        "checkpoint": FOLDER,
        "roles": [{"name": "a", "gpu": 1}, {"name": "b", "gpu": 1}],
    },
}


def pod_spec(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = render(make_input(spec, **changes))["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("cap_image", [None, CAP])
@pytest.mark.parametrize("case", REPORTING)
def test_who_reports_has_the_token_in_each_container(case: str, cap_image: Any) -> None:
    found = pod_spec(REPORTING[case], cap_image=cap_image, role="b" if case == "roles" else "")
    assert [each for each in found["volumes"] if each["name"] == TOKEN["name"]] == [TOKEN]
    theirs = [*found.get("initContainers", ()), *found["containers"]]
    for container in theirs:
        ours = container["name"] == "gpu-scheduler-cap"
        assert container["volumeMounts"].count(MOUNT) == (0 if ours else 1)
        assert container["env"].count(FILE) == (0 if ours else 1)


def test_a_token_needs_nothing_of_kube_scheduler() -> None:
    for spec in REPORTING.values():
        if "roles" not in spec:
            assert choose(pod_spec(spec), {}) == (WritePath.BIND, "")


def test_who_reports_nothing_gets_nothing_new() -> None:
    for name, case in CASES.items():
        text = str(render(case))
        assert ("serviceAccountToken" in text) == reports(case.spec), name
        assert ("GPUJOB_TOKEN_FILE" in text) == reports(case.spec), name
    found = {name for name, case in CASES.items() if reports(case.spec)}
    assert found == {name for name in CASES if "checkpoint" in name}
    assert not reports(GPUJobSpec.model_validate({"image": "a", "gpu": 1, "sweep": SWEEP}))


@pytest.mark.parametrize("case", REPORTING)
def test_no_variable_of_a_template_leads_to_another_file(case: str) -> None:
    mine = [{"name": FILE["name"], "value": "/mine"}]
    spec = dict(REPORTING[case])
    if "template" in spec:
        spec["template"] = {"spec": {"containers": [{**TWO[0], "env": mine}]}}
    else:
        spec["env"] = mine
    assert "/mine" not in str(pod_spec(spec, role="b" if case == "roles" else ""))


def test_a_job_that_reports_nothing_keeps_its_own_variable_and_volume() -> None:
    mine = {"name": FILE["name"], "value": "/mine"}
    (main,) = pod_spec({"image": "a", "gpu": 0.5, "env": [mine]})["containers"]
    assert mine in main["env"]
    volume = {"name": TOKEN["name"], "emptyDir": {}}
    assert not problems({"containers": TWO, "volumes": [volume]}, {0}, interposer=True)


def conflicts(**pod: Any) -> dict[str, str]:
    spec = {"containers": TWO, **pod}
    said = Checkpoint.model_validate(FOLDER)
    found = problems(spec, {0}, interposer=True, checkpoint=said, reports=True)
    return {problem.field: problem.message for problem in found}


def mounted(**mount: Any) -> dict[str, str]:
    """What is said of such a mount in the second container, which has no GPU."""
    return conflicts(containers=[TWO[0], {**TWO[1], "volumeMounts": [{"name": "x", **mount}]}])


def test_the_name_of_the_volume_is_ours() -> None:
    found = conflicts(volumes=[{"name": TOKEN["name"], "emptyDir": {}}])
    assert "reserved; rename" in found["spec.template.spec.volumes[0].name"]
    theirs = {"name": TOKEN["name"], "volumeMounts": [{"name": TOKEN["name"], "mountPath": "/x"}]}
    found = conflicts(initContainers=[theirs])
    assert "reserved" in found["spec.template.spec.initContainers[0].volumeMounts[0].name"]


@pytest.mark.parametrize(
    "path", [PATH, f"{PATH}/", f"/x/..{PATH}", f"{PATH}/token", PATH.removeprefix("/var"), PATH[1:]]
)
def test_nothing_is_mounted_where_the_token_is(path: str) -> None:
    found = mounted(mountPath=path)
    said = found["spec.template.spec.containers[1].volumeMounts[0].mountPath"]
    assert PATH in said and "mount the volume elsewhere" in said


@pytest.mark.parametrize("path", ["/var/run/secrets", "/var/run", "/run", "/run/secrets/", "/var"])
def test_a_folder_above_it_may_be_mounted_if_it_can_be_written(path: str) -> None:
    assert mounted(mountPath=path) == {}
    (said,) = mounted(mountPath=path, readOnly=True).values()
    assert "without readOnly" in said


@pytest.mark.parametrize("path", ["/var/run/secrets/kubernetes.io/serviceaccount", "/data", None])
def test_what_is_beside_it_is_the_users_affair(path: Any) -> None:
    assert mounted(mountPath=path, readOnly=True) == {}
