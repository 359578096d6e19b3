"""A cluster with the three jobs of ``use_objects``, and ``kubectl gpu`` on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result
from tests.unit.cli.node_objects import GPUJOBS, GPUNODES, NODES, PODS, PROJECTS
from tests.unit.cli.objects_server import Objects, serving
from tests.unit.cli.use_objects import (
    GPUUSAGES,
    busy_job,
    gpunodes,
    idle_notebook,
    job,
    nodes,
    oversized_job,
    pods,
    usage,
)

from gpu_scheduler.cli.root import app

Call = Callable[..., Result]


def three_jobs() -> Objects:
    """Of the namespace team-a, which belongs to the project vision."""
    project = {
        "metadata": {"name": "vision"},
        "spec": {"quota": 2, "namespaces": ["team-a"]},
        "status": {"allocatedGPU": "2.5"},
    }
    return Objects(
        {
            NODES: nodes(),
            GPUNODES: gpunodes(),
            PODS: pods(),
            GPUJOBS: [job("train"), job("finetune")],
            GPUUSAGES: [usage(busy_job(), idle_notebook(), oversized_job())],
            PROJECTS: [project],
        }
    )


def only_one_namespace(objects: Objects) -> None:
    """As for a tenant who may view team-a and nothing else."""
    objects.forbidden |= {NODES, GPUNODES, PODS, GPUJOBS, GPUUSAGES, PROJECTS}


@contextmanager
def calling(objects: Objects, folder: Path) -> Iterator[Call]:
    """The command line, asked as somebody with a kubeconfig would."""
    with serving(objects, folder) as kubeconfig:

        def call(*words: str) -> Result:
            return CliRunner(env={"KUBECONFIG": kubeconfig}).invoke(app, words)

        yield call
