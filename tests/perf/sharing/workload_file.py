"""A workload out of a YAML file: nodes, projects and jobs, with times in seconds.

What cannot be used is refused with the place in the file and what would be right;
``examples/workloads/two-teams.yml`` has every field.
"""

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import ConfigDict, Field, model_validator
from tests.perf.replay.arrivals import cluster_of
from tests.perf.replay.trace import MOST_GPUS, TraceNode
from tests.perf.sharing import workload

from gpu_scheduler.api import validate
from gpu_scheduler.api.model import ApiModel
from gpu_scheduler.core.model.request import DeviceRequest, PodShape, Project, ProjectName
from gpu_scheduler.core.model.units import milli_from_gpu

_MOST_PODS = 100_000
Seconds = Annotated[float, Field(gt=0, le=10_000_000)]
Amount = Annotated[float, Field(ge=0, le=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=63)]


class _Part(ApiModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=False, allow_inf_nan=False)


class _Nodes(_Part):
    count: int = Field(ge=1, le=10_000)
    gpus: int = Field(ge=1, le=MOST_GPUS)
    cpu: int = Field(128, ge=1, le=100_000)


class _Project(_Part):
    name: Name
    quota: Amount = 0
    limit: Amount | None = None
    weight: int = Field(1, ge=0, le=1000)
    min_runtime_seconds: Annotated[float, Field(ge=0, le=10_000_000)] | None = None


class _Job(_Part):
    name: Name
    project: Name
    gpu: float = Field(gt=0, le=1)
    gpus: int = Field(1, ge=1, le=MOST_GPUS)
    pods: int = Field(1, ge=1, le=_MOST_PODS)
    seconds: Seconds
    arrives: float = Field(0, ge=0, le=10_000_000)
    priority: int = Field(50, ge=0, le=100)
    interactive: bool = False
    gang: bool = False
    limited: bool = False
    checkpoint_seconds: Seconds | None = None
    parallelism: int | None = Field(None, ge=1, le=_MOST_PODS)

    @model_validator(mode="after")
    def _whole(self) -> "_Job":
        if self.gpus > 1 and self.gpu != 1:
            raise ValueError("gpu: is 1 where a pod has several GPUs (gpus)")
        if self.gang and self.parallelism is not None:
            raise ValueError("parallelism: the pods of a gang are there all at once; leave it out")
        return self


class _File(_Part):
    nodes: list[_Nodes] = Field(min_length=1, max_length=100)
    projects: list[_Project] = Field(min_length=1, max_length=1000)
    jobs: list[_Job] = Field(min_length=1, max_length=100_000)
    seconds: Seconds
    counted_from: float = Field(0, ge=0)
    grace_seconds: float = Field(2, ge=0, le=3600)

    @model_validator(mode="after")
    def _known(self) -> "_File":
        named = {"projects": [t.name for t in self.projects], "jobs": [j.name for j in self.jobs]}
        for what, names in named.items():
            seen: set[str] = set()
            for at, name in enumerate(names):
                if name in seen:
                    raise ValueError(f"{what}[{at}].name: {name} is there twice")
                seen.add(name)
        teams = {team.name for team in self.projects}
        for at, job in enumerate(self.jobs):
            if job.project not in teams:
                raise ValueError(f"jobs[{at}].project: there is no project {job.project}")
        if self.counted_from >= self.seconds:
            raise ValueError("countedFrom: must be less than seconds")
        return self


def read(path: Path) -> workload.Workload:
    """The workload of a file.

    Raises:
        ValueError: the file cannot be read or used; the message says where and why.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    file = validate.read(_File, raw)
    if isinstance(file, tuple):
        field, message = file[0].field, file[0].message.removeprefix("Value error, ")
        raise ValueError(f"{path}: {f'{field}: ' if field else ''}{message}")
    machines = [
        TraceNode(f"n{kind}-{number}", each.cpu * 1000, 1 << 44, each.gpus, "gpu")
        for kind, each in enumerate(file.nodes)
        for number in range(each.count)
    ]
    try:
        teams = {ProjectName(team.name): _project(team) for team in file.projects}
        jobs = [_job(job) for job in file.jobs]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return workload.Workload(
        path.stem,
        cluster_of(machines),
        teams,
        jobs,
        file.seconds,
        file.counted_from,
        file.grace_seconds,
    )


def _project(team: _Project) -> Project:
    limit = None if team.limit is None else milli_from_gpu(team.limit)
    return Project(
        ProjectName(team.name),
        milli_from_gpu(team.quota),
        limit,
        team.weight,
        min_runtime_seconds=team.min_runtime_seconds,
    )


def _job(job: _Job) -> workload.SimulatedJob:
    devices = (DeviceRequest(0, job.gpus, milli_from_gpu(job.gpu)),)
    return workload.SimulatedJob(
        job.name,
        ProjectName(job.project),
        PodShape(devices=devices, cpu_milli=1000),
        (job.seconds,) * job.pods,
        job.arrives,
        job.priority,
        job.interactive,
        job.gang,
        job.limited,
        job.checkpoint_seconds,
        job.parallelism,
    )
