"""Roles and what follows from them: parts, host names, ranks, and what is wrong with a gang."""

from pathlib import Path

import pytest
import yaml
from tests.unit.api.cases import job, pod, roles
from tests.unit.api.test_validate import judge

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import hosts, is_distributed, is_gang, parts
from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.core.model.request import DeviceRequest


def read(spec):
    return GPUJobSpec.model_validate(spec)


MASTER = {"name": "master", "gpu": 4, "gpuModels": ["K80"]}
WORKER = {"name": "worker", "replicas": 2, "gpu": 0.5, "image": "w:1", "args": ["go"]}
SERVER = {"name": "ps", "replicas": 3}


def test_a_job_without_roles_is_one_part_that_says_what_the_job_says():
    spec = read(job(parallelism=2, completions=4))
    (part,) = parts(spec)
    assert (part.role, part.spec, part.pods, part.first_rank) == ("", spec, 4, 0)
    assert part.job_name("train") == "train"


def test_ranks_count_over_the_roles_in_their_order():
    found = parts(read(roles(MASTER, WORKER, SERVER)))
    assert [(p.role, p.pods, p.first_rank) for p in found] == [
        ("master", 1, 0),
        ("worker", 2, 1),
        ("ps", 3, 3),
    ]
    assert [p.job_name("train") for p in found] == ["train-master", "train-worker", "train-ps"]


def test_host_names_come_in_the_order_of_ranks():
    assert list(hosts("train", read(roles(MASTER, WORKER)))) == [
        ("master", "train-master-0.train"),
        ("worker", "train-worker-0.train"),
        ("worker", "train-worker-1.train"),
    ]
    assert [h for _, h in hosts("t", read(job(gang=True, parallelism=2)))] == ["t-0.t", "t-1.t"]


def test_a_role_says_what_differs_and_the_job_the_rest():
    spec = read(roles(MASTER, WORKER, SERVER, gpuModels=["T4"], command=["run"], args=["x"]))
    master, worker, server = (part.spec for part in parts(spec))
    assert (master.image, master.command, master.args) == ("trainer:1", ["run"], ["x"])
    assert (worker.image, worker.command, worker.args) == ("w:1", ["run"], ["go"])
    assert [s.gpu_models for s in (master, worker, server)] == [["K80"], ["T4"], ["T4"]]
    assert [device_requests(s) for s in (master, worker, server)] == [
        (DeviceRequest(0, 4, 1000),),
        (DeviceRequest(0, 1, 500),),
        (),
    ]
    assert [s.parallelism for s in (master, worker, server)] == [1, 2, 3]


def test_a_variable_of_a_role_replaces_the_jobs_and_the_others_stay():
    base = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    own = {"name": "a", "gpu": 1, "env": [{"name": "B", "value": "3"}]}
    (part,) = parts(read(roles(own, env=base)))
    assert [(e.name, e.value) for e in part.spec.env or ()] == [("A", "1"), ("B", "3")]


def test_over_a_template_a_role_changes_the_first_container():
    base = pod("a", "b")
    base["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    own = {"name": "x", "gpu": 1, "image": "x:1", "env": [{"name": "B", "value": "2"}]}
    (part,) = parts(read(roles(own, image=None, template=base)))
    first, second = part.spec.template["spec"]["containers"]
    assert (first["name"], first["image"], second["image"]) == ("a", "x:1", "b:1")
    assert first["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert base["spec"]["containers"][0]["image"] == "a:1"  # the job's own stays as it was


def test_a_template_of_a_role_takes_the_place_of_the_jobs_image():
    (part,) = parts(read(roles({"name": "x", "gpu": 1, "template": pod("z")}, args=["x"])))
    assert (part.spec.image, part.spec.args) == (None, None)
    assert part.spec.template["spec"]["containers"][0]["name"] == "z"


@pytest.mark.parametrize(
    ("spec", "gang", "distributed"),
    [
        (job(), False, False),
        (job(parallelism=4), False, False),
        (job(gang=True, parallelism=4), True, True),
        (roles(), True, True),
        (roles({"name": "only", "gpu": 1}), False, True),
        (roles(gang=False), False, True),
    ],
)
def test_a_gang_is_what_has_roles_unless_it_says_otherwise(spec, gang, distributed):
    assert (is_gang(read(spec)), is_distributed(read(spec))) == (gang, distributed)


def messages(spec, name):
    return [str(problem) for problem in judge(spec, name)]


def test_host_names_must_be_dns_labels():
    name = "n" * 56
    assert judge(roles({"name": "ps", "replicas": 1000, "gpu": 1}), name) == []  # 63 characters
    (message,) = messages(roles({"name": "ps1", "replicas": 1000, "gpu": 1}), name)
    assert "has 64 characters" in message and "role ps1" in message


def test_a_service_needs_a_name_that_starts_with_a_letter():
    (message,) = messages(roles(), "3d-model")
    assert message.startswith("metadata.name: 3d-model does not start with a letter")
    assert messages(job(), "3d-model") == []


def test_a_role_that_is_listed_twice_is_found_without_the_crd():
    found = messages(roles({"name": "a", "gpu": 1}, {"name": "a", "gpu": 1}), "train")
    assert "spec.roles[1].name: a is listed twice" in found


@pytest.mark.parametrize("template", [{}, {"spec": 3}, {"spec": {"containers": [3]}}])
def test_a_template_that_is_none_is_a_problem_and_no_traceback(template):
    own = {"name": "a", "gpu": 1, "image": "a:1"}
    assert messages(roles(own, image=None, template=template), "train")
    assert messages(roles({"name": "a", "gpu": 1, "template": template}), "train")


@pytest.mark.parametrize("name", [["A"], {"a": 1}])
def test_a_variable_whose_name_is_none_stays_for_the_dry_run_to_judge(name):
    template = {"spec": {"containers": [{"name": "a", "env": [{"name": name}]}]}}
    role = {"name": "r", "gpu": 1, "env": [{"name": "A", "value": "1"}]}
    (part,) = parts(read(roles(role, image=None, template=template)))
    assert [e["name"] for e in part.spec.template["spec"]["containers"][0]["env"]] == [name, "A"]


def test_metadata_of_a_template_that_are_no_object_are_a_problem():
    template = pod("a") | {"metadata": ["x"]}
    assert messages(roles({"name": "a", "gpu": 1, "template": template}), "train") == [
        "spec.roles[0].template.metadata: must be an object"
    ]


def test_a_template_of_a_role_is_judged_like_that_of_a_job():
    restarts = pod("a", restartPolicy="Always")
    (message,) = messages(roles({"name": "a", "gpu": 1, "template": restarts}), "train")
    assert message.startswith("spec.roles[0].template.spec.restartPolicy: must be Never or absent")


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["gang-torch", "gang-tensorflow"])
def test_the_examples_are_gangs_without_a_problem(name):
    body = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    assert judge(body["spec"], body["metadata"]["name"]) == []
    assert is_gang(read(body["spec"]))
