import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.jobs.golden_jobs import CASES, FOLDER, SWEEP, TEMPLATE, make_input, text_of

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import LIMIT_OF_TEMPLATE
from gpu_scheduler.jobs.render import render
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube.objects import Job

SHORT = {"image": "a", "gpu": 0.5}


def pod_spec(job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def env_of(container: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Variables by name as the container gets them: a later entry wins."""
    return {entry["name"]: entry for entry in container["env"]}


def template(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **fields}}


@pytest.mark.parametrize("case", CASES)
def test_job_is_as_the_golden_file_says(case: str) -> None:
    assert text_of(render(CASES[case])) == (FOLDER / f"{case}.yaml").read_text()


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_equal_input_gives_equal_output_without_shared_parts(case: str) -> None:
    first, second = render(CASES[case]), render(CASES[case])
    assert first == second
    pod_spec(first)["containers"][0]["env"].clear()
    assert first != second
    assert render(CASES[case]) == second


def test_typed_job_reads_what_was_rendered() -> None:
    job = msgspec.convert(render(CASES["short_form_bind"]), Job)
    assert (job.spec.parallelism, job.spec.completions, job.spec.suspend) == (2, 4, False)
    assert job.metadata.owner_references[0].kind == "GPUJob"


def test_completions_default_to_parallelism() -> None:
    job = render(make_input({**SHORT, "parallelism": 3}))
    assert job["spec"]["completions"] == 3
    assert env_of(pod_spec(job)["containers"][0])["GPUJOB_COMPLETIONS"]["value"] == "3"


def test_the_short_form_gets_no_credentials_and_a_template_decides_for_itself() -> None:
    assert pod_spec(render(make_input(SHORT)))["automountServiceAccountToken"] is False
    main = {"name": "main", "image": "a"}
    for chosen in (True, False):
        wanted = template(main, automountServiceAccountToken=chosen)
        job = render(make_input({"template": wanted, "gpu": 0.5}))
        assert pod_spec(job)["automountServiceAccountToken"] is chosen
    job = render(make_input({"template": template(main), "gpu": 0.5}))
    assert "automountServiceAccountToken" not in pod_spec(job)


def test_labels_of_a_template_are_on_its_job_too_but_none_by_which_others_take_it() -> None:
    """A policy of the cluster may want labels on Jobs; Kueue would suspend what bears its own."""
    theirs = {"team": "vision", "app.kubernetes.io/name": "train"}
    foreign = {"kueue.x-k8s.io/queue-name": "a", "job-name": "b", "gpu-scheduler.io/job": "c"}
    spec = template({"name": "a"}) | {"metadata": {"labels": theirs | foreign}}
    labels = render(make_input({"template": spec, "gpu": 1}))["metadata"]["labels"]
    assert {key: labels[key] for key in theirs} == theirs
    assert labels["gpu-scheduler.io/job"] != "c"
    assert not {"kueue.x-k8s.io/queue-name", "job-name"} & labels.keys()


def test_labels_of_the_gpujob_are_on_its_job_and_pods() -> None:
    """Not those that say who manages the object, nor on pods those by which Services find them."""
    own = {
        "team": "vision",
        "example.com/cost-centre": "7",
        "app.kubernetes.io/name": "train",
        "app": "train",
    }
    foreign = {
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "train-1",
        "argocd.argoproj.io/instance": "train",
        "kueue.x-k8s.io/queue-name": "a",
        "batch.kubernetes.io/job-name": "b",
        "gpu-scheduler.io/project": "c",
        "kustomize.toolkit.fluxcd.io/name": "d",
    }
    job = render(make_input(SHORT, labels=tuple({**own, **foreign}.items())))
    ours = {"gpu-scheduler.io/job": "frac05", "gpu-scheduler.io/project": "team-a"}
    assert job["metadata"]["labels"] == {**own, **ours}
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels == {"team": "vision", "example.com/cost-centre": "7", **ours}


def test_labels_of_a_template_win_over_those_of_the_gpujob() -> None:
    spec = template({"name": "a"}) | {"metadata": {"labels": {"team": "speech"}}}
    job = render(make_input({"template": spec, "gpu": 1}, labels=(("team", "vision"),)))
    assert job["metadata"]["labels"]["team"] == "speech"
    assert job["spec"]["template"]["metadata"]["labels"]["team"] == "speech"


def test_time_limit_of_the_job_wins_over_the_template() -> None:
    spec = {"template": template({"name": "a"}, activeDeadlineSeconds=5), "gpu": 1}
    assert pod_spec(render(make_input(spec)))["activeDeadlineSeconds"] == 5
    limited = render(make_input({**spec, "timeLimitSeconds": 60}))
    assert pod_spec(limited)["activeDeadlineSeconds"] == 60


def test_pods_bear_it_that_their_limit_is_the_templates() -> None:
    def notes(**more: object) -> dict[str, str]:
        job = render(make_input({"template": template({"name": "a"}, **more), "gpu": 1}))
        found: dict[str, str] = job["spec"]["template"]["metadata"]["annotations"]
        return found

    assert LIMIT_OF_TEMPLATE in notes(activeDeadlineSeconds=5)
    assert LIMIT_OF_TEMPLATE not in notes()
    spec = {"template": template({"name": "a"}, activeDeadlineSeconds=5), "timeLimitSeconds": 60}
    job = render(make_input({**spec, "gpu": 1}))
    assert LIMIT_OF_TEMPLATE not in job["spec"]["template"]["metadata"]["annotations"]


def test_a_trial_that_was_told_to_stop_is_over_before_an_eviction_is_forgiven() -> None:
    def first_rule(**sweep: object) -> str:
        job = render(make_input({**SHORT, "sweep": {**SWEEP, **sweep}, "completions": 4}))
        rule = job["spec"]["podFailurePolicy"]["rules"][0]
        return f"{rule['action']} {rule['onPodConditions'][0]['type']}"

    assert first_rule(earlyStopping={"type": "median"}) == "FailIndex gpu-scheduler.io/Pruned"
    assert first_rule() == "Ignore DisruptionTarget"


def test_runtime_class_only_where_the_cluster_has_it_and_the_user_chose_none() -> None:
    assert "runtimeClassName" not in pod_spec(render(make_input(SHORT, has_runtime_class=False)))
    named = render(make_input(SHORT, runtime_class="nvidia-cdi"))
    assert pod_spec(named)["runtimeClassName"] == "nvidia-cdi"
    chosen = {"template": template({"name": "a"}, runtimeClassName="kata"), "gpu": 1}
    assert pod_spec(render(make_input(chosen)))["runtimeClassName"] == "kata"


def test_gated_pods_do_not_preempt_unless_the_user_chose_a_class() -> None:
    gate = {"path": WritePath.GATE}
    assert pod_spec(render(make_input(SHORT, **gate)))["priorityClassName"] == "gpu-scheduler-gated"
    bare = render(make_input(SHORT, **gate, has_priority_class=False))
    assert "priorityClassName" not in pod_spec(bare)
    chosen = {"template": template({"name": "a"}, priorityClassName="high"), "gpu": 1}
    assert pod_spec(render(make_input(chosen, **gate)))["priorityClassName"] == "high"
    assert "priorityClassName" not in pod_spec(render(make_input(SHORT)))


def test_our_gate_is_there_once_on_the_gate_path_and_never_on_the_bind_path() -> None:
    ours, foreign = {"name": "gpu-scheduler.io/placement"}, {"name": "example.com/license"}
    spec = {"template": template({"name": "a"}, schedulingGates=[ours, foreign]), "gpu": 1}
    gated = pod_spec(render(make_input(spec, path=WritePath.GATE)))
    assert gated["schedulingGates"] == [foreign, ours]
    assert pod_spec(render(make_input(spec)))["schedulingGates"] == [foreign]
    only_ours = {"template": template({"name": "a"}, schedulingGates=[ours]), "gpu": 1}
    assert "schedulingGates" not in pod_spec(render(make_input(only_ours)))


def test_labels_stay_within_63_characters_and_distinct() -> None:
    names = ["p" * 70 + "1", "p" * 70 + "2"]
    labels = [
        render(make_input(SHORT, project=name))["spec"]["template"]["metadata"]["labels"]
        for name in names
    ]
    values = [each["gpu-scheduler.io/project"] for each in labels]
    assert values[0] != values[1]
    assert [len(value) for value in values] == [63, 63]


def test_forged_marks_of_the_template_never_reach_the_pod() -> None:
    meta = render(CASES["template_two_gpu_containers"])["spec"]["template"]["metadata"]
    assert meta["annotations"] == {
        "example.com/note": "kept",
        "kubectl.kubernetes.io/default-container": "trainer",
        "gpu-scheduler.io/c0-devices": "void",
        "gpu-scheduler.io/c2-devices": "void",
    }
    assert meta["labels"]["gpu-scheduler.io/project"] == "team-a"


def test_ours_stand_before_the_users_variables() -> None:
    container = pod_spec(render(CASES["template_two_gpu_containers"]))["containers"][0]
    names = [entry["name"] for entry in container["env"]]
    assert names.index("GPU_MEMORY_LIMIT_MIB") < names.index("LIMIT")


def test_users_driver_capabilities_win() -> None:
    theirs = [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]
    job = render(make_input({**SHORT, "env": theirs}))
    names = [entry["name"] for entry in pod_spec(job)["containers"][0]["env"]]
    assert names.count("NVIDIA_DRIVER_CAPABILITIES") == 1
    assert env_of(pod_spec(job)["containers"][0])["NVIDIA_DRIVER_CAPABILITIES"]["value"] == "all"


def test_limit_files_are_a_folder_of_their_own_volume_per_container() -> None:
    spec = pod_spec(render(CASES["template_two_gpu_containers"]))
    mounts = [container.get("volumeMounts", []) for container in spec["containers"]]
    assert [mount["name"] for mount in mounts[2]] == ["gpu-scheduler-c2"]
    assert mounts[1] == []
    assert not any("subPath" in mount for each in mounts for mount in each)


RESERVED = [
    "NVIDIA_VISIBLE_DEVICES",
    "GPU_MEMORY_LIMIT_MIB",
    "GPUCAP_LIMIT_FILE",
    "GPUJOB_NAME",
    "GPUJOB_INDEX",
]
NAMES = [*RESERVED, "MINE"]
envs = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(NAMES), "value": st.just("all")}), max_size=4
)


def container_lists(prefix: str, least: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(envs, min_size=least, max_size=4).map(
        lambda each: [{"name": f"{prefix}{i}", "image": "a", "env": e} for i, e in enumerate(each)]
    )


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    containers = draw(container_lists("c", 1))
    names = draw(
        st.lists(st.sampled_from([c["name"] for c in containers]), min_size=1, unique=True)
    )
    inits = draw(container_lists("i", 0))
    return {
        "template": template(*containers, initContainers=inits),
        "containers": [{"name": name, "gpu": 0.25} for name in names],
    }


@settings(deadline=None)
@given(specs(), st.sampled_from(WritePath))
def test_input_is_never_changed(spec: dict[str, Any], path: WritePath) -> None:
    job = make_input(spec, path=path)
    before = deepcopy(job.spec.model_dump())
    render(job)
    assert job.spec.model_dump() == before


@settings(deadline=None)
@given(specs(), st.sampled_from(WritePath))
def test_gpu_containers_take_devices_from_the_allocation_and_all_others_get_void(
    spec: dict[str, Any], path: WritePath
) -> None:
    job = render(make_input(spec, path=path))
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    with_gpu = {container["name"] for container in spec["containers"]}
    for index, container in enumerate(pod_spec(job)["containers"]):
        visible = [e for e in container["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
        key = f"gpu-scheduler.io/c{index}-devices"
        if container["name"] in with_gpu:
            field = visible[0]["valueFrom"]["fieldRef"]["fieldPath"]
            assert field == f"metadata.annotations['{key}']"
            assert annotations[key] == "void"
        else:
            assert visible[0]["value"] == "void"
            assert key not in annotations
        assert len(visible) == 1
        theirs = {e["name"] for e in container["env"] if e.get("value") == "all"}
        assert theirs <= {"MINE"}
    for container in pod_spec(job)["initContainers"]:
        visible = [e for e in container["env"] if e["name"] == "NVIDIA_VISIBLE_DEVICES"]
        assert visible == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_template_may_leave_lists_out_or_null() -> None:
    spec = {"template": template({"name": "a", "env": None}, initContainers=None), "gpu": 1}
    job = render(make_input(spec))
    assert [v["name"] for v in pod_spec(job)["volumes"]] == ["gpu-scheduler-c0"]


def test_a_rendered_job_is_plain_json() -> None:
    job = render(CASES["template_two_gpu_containers"])
    assert json.loads(json.dumps(job)) == job
    assert GPUJobSpec.model_validate({"template": TEMPLATE, "gpu": 1}).template == TEMPLATE


def test_a_users_choice_of_the_container_that_kubectl_takes_stays() -> None:
    chosen = {"kubectl.kubernetes.io/default-container": "b"}
    spec = {"template": {"metadata": {"annotations": chosen}, "spec": TWO}, "gpu": 0.5}
    meta = render(make_input(spec))["spec"]["template"]["metadata"]
    assert meta["annotations"].items() >= chosen.items()


def test_of_a_single_container_kubectl_needs_not_be_told() -> None:
    meta = render(CASES["short_form_bind"])["spec"]["template"]["metadata"]
    assert "kubectl.kubernetes.io/default-container" not in meta["annotations"]


TWO = {"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}
