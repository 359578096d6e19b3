"""The folder of spec.checkpoint: whose it is, and templates that cannot have one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.jobs.golden_jobs import CAP, SWEEP, make_input

from gpu_scheduler.api.checkpoint import Checkpoint
from gpu_scheduler.jobs.checkpoint import saved
from gpu_scheduler.jobs.conflicts import problems
from gpu_scheduler.jobs.render import render
from gpu_scheduler.kube.objects import Meta

CLAIM = {"volume": {"persistentVolumeClaim": {"claimName": "work"}}}
NAMED = {"volume": {"name": "work"}}
SHORT = {"image": "a", "gpu": 0.5, "checkpoint": CLAIM}
NFS = {"nfs": {"server": "nas", "path": "/"}}


def pod_spec(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = render(make_input(spec, **changes))["spec"]["template"]["spec"]
    return found


def folders(spec: dict[str, Any], **changes: Any) -> list[str]:
    """Where the containers save, with the name of the variable that tells the index."""
    containers = pod_spec(spec, **changes)["containers"]
    mounts = [mount for container in containers for mount in container["volumeMounts"]]
    return [mount["subPathExpr"] for mount in mounts if "subPathExpr" in mount]


def test_a_job_that_is_applied_again_has_the_folder_that_it_had() -> None:
    both = [folders(SHORT, name="a", uid=uid) for uid in ("uid-1", "uid-2")]
    assert both == [["team-a/a/$(GPUJOB_INDEX)"]] * 2


def test_a_sweep_that_is_applied_again_begins_with_empty_folders() -> None:
    spec = {**SHORT, "completions": 2, "sweep": SWEEP}
    first, second = (folders(spec, name="a", uid=uid) for uid in ("uid-1", "uid-2"))
    assert first == ["team-a/a.uid-1/$(GPUJOB_INDEX)"]
    assert first != second


def test_jobs_roles_and_namespaces_have_folders_of_their_own() -> None:
    roles = {"image": "a", "checkpoint": CLAIM, "roles": [{"name": n, "gpu": 1} for n in "ab"]}
    found = [
        *folders(SHORT, name="a"),
        *folders(SHORT, name="b"),
        *folders(SHORT, name="a", namespace="team-b"),
        *folders(roles, name="c", role="a"),
        *folders(roles, name="c", role="b"),
    ]
    assert len(set(found)) == len(found) == 5


@pytest.mark.parametrize("cap_image", [None, CAP])
def test_containers_and_sidecars_have_the_folder_and_init_containers_do_not(cap_image: Any) -> None:
    inits = [{"name": "fetch", "image": "a"}]
    inits += [{"name": "copy", "image": "a", "restartPolicy": "Always"}]
    containers = [{"name": n, "image": "a"} for n in ("train", "plain")]
    template = {"spec": {"initContainers": inits, "containers": containers}}
    spec = {"template": template, "gpu": 0.5, "checkpoint": CLAIM}
    found = pod_spec(spec, cap_image=cap_image)
    having = {
        each["name"]
        for each in (*found["initContainers"], *found["containers"])
        if any(mount["mountPath"] == "/checkpoint" for mount in each.get("volumeMounts", ()))
    }
    told = {
        each["name"]
        for each in (*found["initContainers"], *found["containers"])
        if any(entry["name"] == "GPUJOB_CHECKPOINT_DIR" for entry in each["env"])
    }
    assert having == told == {"copy", "train", "plain"}


@pytest.mark.parametrize("sweep", [False, True])
@pytest.mark.parametrize("kind", ["env", "initContainers", "containers"])
def test_no_variable_of_a_template_leads_to_another_folder(sweep: bool, kind: str) -> None:
    names = ("GPUJOB_INDEX", "GPUJOB_CHECKPOINT_DIR", "GPUJOB_CHECKPOINT_URL")
    theirs = [{"name": name, "value": "../theirs"} for name in names]
    spec: dict[str, Any] = {"gpu": 0.5, "checkpoint": CLAIM}
    if kind == "env":
        spec |= {"image": "a", "env": theirs}
    else:
        main = {"name": "main", "image": "a"}
        pod = {"containers": [main], kind: [{"name": "x", "image": "a", "env": theirs}]}
        spec |= {"template": {"spec": pod}}
    if sweep:
        spec |= {"completions": 2, "sweep": SWEEP}
    found = pod_spec(spec)
    for container in (*found.get("initContainers", ()), *found["containers"]):
        assert "../theirs" not in str(container["env"])


def test_a_job_without_a_checkpoint_keeps_its_own_variables_of_these_names() -> None:
    theirs = [{"name": "GPUJOB_CHECKPOINT_DIR", "value": "/mine"}]
    (main,) = pod_spec({"image": "a", "gpu": 0.5, "env": theirs})["containers"]
    assert theirs[0] in main["env"]


def conflicts(checkpoint: dict[str, Any], **pod: Any) -> dict[str, str]:
    spec = {"containers": [{"name": "a"}], **pod}
    said = Checkpoint.model_validate(checkpoint)
    return {p.field: p.message for p in problems(spec, {0}, interposer=True, checkpoint=said)}


def test_a_volume_that_the_template_does_not_have_is_refused_with_those_that_it_has() -> None:
    found = conflicts(NAMED, volumes=[{"name": "data", **NFS}, {"name": "more", **NFS}])
    assert found.keys() == {"spec.checkpoint.volume.name"}
    assert "work is no volume of spec.template; it has: data, more" in str(found)
    assert "it has: none" in str(conflicts(NAMED))


PASSING = {
    "emptyDir": {},
    "configMap": {"name": "x"},
    "secret": {"secretName": "x"},
    "downwardAPI": {},
    "projected": {"sources": []},
    "ephemeral": {"volumeClaimTemplate": {}},
    "image": {"reference": "x"},
}


@pytest.mark.parametrize("kind", PASSING)
def test_a_volume_that_does_not_outlive_its_pod_or_cannot_be_written_is_refused(kind: str) -> None:
    found = conflicts(NAMED, volumes=[{"name": "work", kind: PASSING[kind]}])
    assert f"({kind})" in found["spec.checkpoint.volume.name"]
    assert "persistentVolumeClaim, nfs or hostPath" in found["spec.checkpoint.volume.name"]


def test_a_volume_without_a_source_and_one_that_is_read_only_are_refused() -> None:
    assert "emptyDir" in str(conflicts(NAMED, volumes=[{"name": "work"}]))
    claim = {"claimName": "x", "readOnly": True}
    volumes = [{"name": "work", "persistentVolumeClaim": claim}]
    assert "cannot be written to (readOnly)" in str(conflicts(NAMED, volumes=volumes))


@pytest.mark.parametrize("kind", ["nfs", "hostPath", "csi", "cephfs"])
def test_a_volume_that_outlives_its_pod_will_do(kind: str) -> None:
    assert conflicts(NAMED, volumes=[{"name": "work", kind: {"path": "/a"}}]) == {}


def test_the_name_of_our_volume_is_kept_where_we_add_one() -> None:
    volumes = [{"name": "gpu-scheduler-checkpoint", **NFS}]
    assert "rename" in conflicts(CLAIM, volumes=volumes)["spec.template.spec.volumes[0].name"]
    named = {"volume": {"name": "gpu-scheduler-checkpoint"}}
    assert conflicts(named, volumes=volumes) == {}


@pytest.mark.parametrize(
    "path", ["/checkpoint", "/checkpoint/", "//checkpoint", "/a/../checkpoint"]
)
def test_nothing_else_is_mounted_where_the_folder_is(path: str) -> None:
    container = {"name": "a", "volumeMounts": [{"name": "x"}, {"mountPath": path}]}
    (field, said), *_ = conflicts(CLAIM, containers=[container]).items()
    assert field == "spec.template.spec.containers[0].volumeMounts[1].mountPath"
    assert "spec.checkpoint.mountPath" in said
    passing = conflicts(CLAIM, initContainers=[container])
    assert passing == {}, "an init container has no folder"


def test_when_a_pod_was_saved_is_written_on_exactly_this_pod() -> None:
    at = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    write = saved(Meta(name="a-0", namespace="team-a", uid="u"), at)
    assert (write.method, write.path) == ("PATCH", "/api/v1/namespaces/team-a/pods/a-0")
    annotations = {"gpu-scheduler.io/checkpointed-at": "2026-01-01T12:00:00.250000Z"}
    assert write.body == {"metadata": {"uid": "u", "annotations": annotations}}
