"""What the pods of a gang are told of each other."""

import json
import re
from typing import Any

from tests.unit.jobs.golden_jobs import CAP, ROLES, make_input
from tests.unit.jobs.pods import make_pod
from tests.unit.jobs.test_render import env_of, pod_spec

from gpu_scheduler.api.names import LABEL_FIRST_RANK, RANK
from gpu_scheduler.jobs.annotation import placement
from gpu_scheduler.jobs.env import INDEX_ANNOTATION
from gpu_scheduler.jobs.render import render
from gpu_scheduler.jobs.service import service

SMALL = {
    "image": "a",
    "roles": [{"name": "chief", "gpu": 1}, {"name": "worker", "replicas": 2, "gpu": 1}],
}


def rendered(role: str, **fields: Any) -> dict[str, Any]:
    return render(make_input({**SMALL, **fields}, name="train", role=role))


def values(role: str, **fields: Any) -> dict[str, Any]:
    """Values of the variables in the one container, None where they come from elsewhere."""
    (container,) = pod_spec(rendered(role, **fields))["containers"]
    return {name: entry.get("value") for name, entry in env_of(container).items()}


def tf_config(role: str, index: int, **fields: Any) -> dict[str, Any]:
    """TF_CONFIG as the container sees it: $(NAME) expands as the kubelet does it."""
    text = values(role, **{"framework": "tensorflow", **fields})["TF_CONFIG"]
    found: dict[str, Any] = json.loads(text.replace("$(GPUJOB_INDEX)", str(index)))
    return found


def test_every_pod_knows_its_role_and_all_host_names() -> None:
    told = values("worker")
    assert told["GPUJOB_ROLE"] == "worker"
    assert told["GPUJOB_WORLD_SIZE"] == "3"
    assert told["GPUJOB_COMPLETIONS"] == "2"  # of its own role, as GPUJOB_INDEX is
    assert told["GPUJOB_HOSTS"] == "train-chief-0.train,train-worker-0.train,train-worker-1.train"
    assert not {"MASTER_ADDR", "TF_CONFIG"} & told.keys()


def test_host_names_are_what_kubernetes_makes_of_job_index_and_subdomain() -> None:
    job = rendered("worker")
    names = [f"{job['metadata']['name']}-{i}.{pod_spec(job)['subdomain']}" for i in range(2)]
    assert values("worker")["GPUJOB_HOSTS"].split(",")[1:] == names


def test_a_job_whose_pods_know_nothing_of_each_other_has_no_peers() -> None:
    job = render(make_input({"image": "a", "gpu": 1, "parallelism": 2}))
    assert "subdomain" not in pod_spec(job)
    assert not {"GPUJOB_HOSTS", "GPUJOB_ROLE"} & env_of(pod_spec(job)["containers"][0]).keys()


def test_torch_is_told_the_first_host_and_the_rank_that_the_placement_writes() -> None:
    job = rendered("worker", framework="torch")
    env = env_of(pod_spec(job)["containers"][0])
    assert {n: env[n]["value"] for n in env if n.startswith(("MASTER", "PET_M", "PET_NN"))} == {
        "MASTER_ADDR": "train-chief-0.train",
        "MASTER_PORT": "29500",
        "PET_MASTER_ADDR": "train-chief-0.train",
        "PET_MASTER_PORT": "29500",
        "PET_NNODES": "3",
    }
    paths = {env[n]["valueFrom"]["fieldRef"]["fieldPath"] for n in ("RANK", "PET_NODE_RANK")}
    assert paths == {f"metadata.annotations['{RANK}']"}
    assert job["spec"]["template"]["metadata"]["labels"][LABEL_FIRST_RANK] == "1"


def test_the_placement_writes_the_rank() -> None:
    at_three = {INDEX_ANNOTATION: "3"}

    def rank(**labels: str) -> str | None:
        pod = make_pod(labels=labels, annotations=at_three)
        return placement(pod, "node-0", ()).get(RANK)

    assert rank(**{LABEL_FIRST_RANK: "4"}) == "7"
    assert rank() is None
    assert rank(**{LABEL_FIRST_RANK: "x"}) is None  # somebody changed it


def test_who_chooses_another_port_gets_it_in_both_forms() -> None:
    told = values("worker", framework="torch", env=[{"name": "MASTER_PORT", "value": "1234"}])
    assert (told["MASTER_PORT"], told["PET_MASTER_PORT"]) == ("1234", "1234")


def test_what_the_user_says_to_the_framework_stands_and_what_we_say_of_the_job_too() -> None:
    mine = [{"name": "TF_CONFIG", "value": "{}"}, {"name": "GPUJOB_ROLE", "value": "boss"}]
    told = values("worker", framework="tensorflow", env=mine)
    assert (told["TF_CONFIG"], told["GPUJOB_ROLE"]) == ("{}", "worker")


def test_tensorflow_sees_the_cluster_and_its_own_place_in_it() -> None:
    assert tf_config("worker", 1) == {
        "cluster": {
            "chief": ["train-chief-0.train:2222"],
            "worker": ["train-worker-0.train:2222", "train-worker-1.train:2222"],
        },
        "task": {"type": "worker", "index": 1},
    }


def test_an_evaluator_is_not_a_member_of_tensorflows_cluster() -> None:
    looks_on = {"roles": [*SMALL["roles"], {"name": "evaluator", "gpu": 1}]}
    assert tf_config("evaluator", 0, **looks_on)["task"] == {"type": "evaluator", "index": 0}
    assert list(tf_config("chief", 0, **looks_on)["cluster"]) == ["chief", "worker"]


def test_tf_config_refers_to_nothing_that_comes_after_it() -> None:
    (container,) = pod_spec(rendered("worker", framework="tensorflow"))["containers"]
    seen: set[str] = set()
    for entry in container["env"]:
        assert set(re.findall(r"\$\((\w+)\)", entry.get("value", ""))) <= seen
        seen.add(entry["name"])


def test_without_roles_tensorflow_knows_workers() -> None:
    job = render(
        make_input(
            {"image": "a", "gpu": 1, "gang": True, "parallelism": 2, "framework": "tensorflow"},
            name="train",
        )
    )
    text = env_of(pod_spec(job)["containers"][0])["TF_CONFIG"]["value"]
    assert '{"worker":["train-0.train:2222","train-1.train:2222"]}' in text
    assert '"task":{"type":"worker","index":$(GPUJOB_INDEX)}' in text


def test_a_gang_ends_with_the_first_member_that_is_given_up() -> None:
    assert rendered("worker")["spec"]["maxFailedIndexes"] == 0
    assert "maxFailedIndexes" not in rendered("worker", gang=False)["spec"]


def test_a_role_without_gpus_gets_neither_library_nor_runtime_class() -> None:
    job = render(make_input(ROLES, name="train", role="ps", cap_image=CAP))
    (container,) = pod_spec(job)["containers"]
    assert env_of(container)["NVIDIA_VISIBLE_DEVICES"] == {
        "name": "NVIDIA_VISIBLE_DEVICES",
        "value": "void",
    }
    assert not {"initContainers", "volumes", "runtimeClassName"} & pod_spec(job).keys()
    assert pod_spec(job)["schedulerName"] == "gpu-scheduler"


def test_the_service_names_the_pods_of_all_roles_before_they_are_ready() -> None:
    made = service("train", "team-a", "uid-1", "team-a")
    labels = rendered("worker")["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["name"] == pod_spec(rendered("worker"))["subdomain"]
    assert made["spec"]["selector"].items() <= labels.items()
    assert made["spec"]["clusterIP"] == "None" and made["spec"]["publishNotReadyAddresses"]
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
