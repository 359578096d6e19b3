"""The jobs that stay: bounded, apart from what others try, and what they mount is there."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import install, jobs, living
from demo.environment import FAKE_LABEL, GPUS, TAINT

FILES = sorted([*living.RUNNING.glob("*.yaml"), *living.WAITING.glob("*.yaml")])
MACHINE_MIB = 4096  # what they may take in all, where everything else takes the rest


def body(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def pod(path: Path) -> Any:
    return body(path)["spec"]["template"]["spec"]


def is_fake(path: Path) -> bool:
    return bool(pod(path).get("nodeSelector") == FAKE_LABEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_job_is_called_as_its_file(path: Path) -> None:
    assert body(path)["metadata"]["name"] == path.stem


def test_the_one_that_is_next_waits_beside_the_two_that_share() -> None:
    assert (jobs.NAMESPACE, living.NEXT) in living.names(living.WAITING)


def test_every_namespace_is_of_a_project() -> None:
    bodies = list(yaml.safe_load_all(living.PROJECTS.read_text()))
    made = {each["metadata"]["name"] for each in bodies if each["kind"] == "Namespace"}
    owned = {name for each in bodies if "spec" in each for name in each["spec"]["namespaces"]}
    assert made == owned
    used = {
        namespace for namespace, _ in living.names(living.RUNNING) | living.names(living.WAITING)
    }
    assert used == made | {jobs.NAMESPACE}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_container_runs_is_in_the_map_that_it_mounts(path: Path) -> None:
    spec = pod(path)
    if "volumes" not in spec:
        return
    assert spec["volumes"][0]["configMap"]["name"] == living.programs()["metadata"]["name"]
    assert body(path)["metadata"]["namespace"] == living.programs()["metadata"]["namespace"]
    program = spec["containers"][0]["command"][1]
    assert program.removeprefix("/programs/") in living.programs()["data"]


def test_programs_have_what_they_import() -> None:
    assert {"gpu.py", "trial.py", "report.py"} == set(living.programs()["data"])


def test_an_image_is_one_that_the_node_has() -> None:
    agent = install.images_operator.tag_of("agent", f"{install.REPOSITORY}:{install.TAG}")
    images = {pod(path)["containers"][0]["image"] for path in FILES if not is_fake(path)}
    assert images <= {agent, "gpu-scheduler/quickstart:1"}


def test_what_runs_for_real_is_bounded() -> None:
    mib, milli = 0, 0
    for path in living.RUNNING.glob("*.yaml"):
        if is_fake(path):
            continue
        spec, container = body(path)["spec"], pod(path)["containers"][0]
        at_once = spec.get("parallelism", 1)
        mib += at_once * int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
        milli += at_once * int(container["resources"]["requests"]["cpu"].removesuffix("m"))
        loader = any(each["name"] == "LOADER" for each in container["env"])
        assert ("cpu" in container["resources"]["limits"]) == loader, path
    assert 0 < mib <= MACHINE_MIB
    assert 0 < milli <= 200


def test_the_real_node_holds_them_beside_the_two_that_share_and_no_gpu_is_left_whole() -> None:
    held = sum(
        body(path)["spec"]["gpu"] * body(path)["spec"].get("parallelism", 1)
        for path in living.RUNNING.glob("*.yaml")
        if not is_fake(path)
    )
    assert held + 0.8 <= GPUS
    vision = next(
        each
        for each in yaml.safe_load_all(living.PROJECTS.read_text())
        if each["kind"] == "GPUProject" and each["metadata"]["name"] == "vision"
    )
    assert held <= vision["spec"]["limit"]


def test_those_on_fake_servers_tolerate_them() -> None:
    fake = [path for path in FILES if is_fake(path)]
    assert fake
    assert all(pod(path)["tolerations"] == [TAINT] for path in fake)
