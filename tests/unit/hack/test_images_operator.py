import shutil
from pathlib import Path

import pytest

from cluster import images_operator
from cluster.images_operator import DOCKERFILE, REPOSITORY, REQUIREMENTS, tag_of


@pytest.mark.parametrize(
    ("tag", "agent"),
    [
        ("gpu-scheduler:dev", "gpu-scheduler-agent:dev"),
        ("gpu-scheduler/operator:dev", "gpu-scheduler/operator-agent:dev"),
        ("host:5000/gpu-scheduler:1.0", "host:5000/gpu-scheduler-agent:1.0"),
        ("host:5000/gpu-scheduler", "host:5000/gpu-scheduler-agent"),
        ("gpu-scheduler", "gpu-scheduler-agent"),
    ],
)
def test_the_agents_image_is_named_after_the_operators(tag: str, agent: str) -> None:
    assert tag_of("agent", tag) == agent
    assert tag_of("operator", tag) == tag


@pytest.mark.parametrize(
    ("tag", "with_optuna"),
    [
        ("gpu-scheduler:dev", "gpu-scheduler:dev-tpe"),
        ("host:5000/gpu-scheduler:1.0", "host:5000/gpu-scheduler:1.0-tpe"),
        ("host:5000/gpu-scheduler", "host:5000/gpu-scheduler:latest-tpe"),
    ],
)
def test_the_image_with_optuna_has_a_tag_of_its_own(tag: str, with_optuna: str) -> None:
    assert tag_of("operator-tpe", tag) == with_optuna
    with_both = tag_of("operator-tpe-dashboard", tag)
    assert with_both == f"{with_optuna}-dashboard"


def test_docker_is_given_every_file_of_requirements_that_the_dockerfile_copies() -> None:
    """A file that .dockerignore leaves out makes a target that cannot be built."""
    lines = (REPOSITORY / DOCKERFILE).read_text().splitlines()
    copied = {line.split()[1] for line in lines if line.startswith("COPY requirements/")}
    given = set((REPOSITORY / ".dockerignore").read_text().splitlines())
    assert copied == {f"requirements/{n}.txt" for names in REQUIREMENTS.values() for n in names}
    assert {f"!{path}" for path in copied} <= given
    assert all((REPOSITORY / path).is_file() for path in copied)


def test_who_is_killed_while_a_large_storage_goes_leaves_none_that_lacks_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    storage = tmp_path / "buildah"
    (storage / "overlay").mkdir(parents=True)
    monkeypatch.setattr(images_operator, "STORAGE_LIMIT_MIB", -1)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", killed)
        images_operator._buildah(storage)
    assert not storage.exists()
    (storage / "overlay").mkdir(parents=True)
    images_operator._buildah(storage)
    assert list(tmp_path.glob("buildah.old-*")) == []
