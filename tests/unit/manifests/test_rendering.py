"""``kubectl gpu render``: pods of any kind, and the rest as it was."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gpu_scheduler.api.names import COMPAT
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.main import app
from gpu_scheduler.manifests.rendering import RenderError, rendered
from gpu_scheduler.manifests.templates import templates

Json = dict[str, Any]
ANY_POD = Path(__file__).parents[3] / "examples" / "any-pod"
GIVEN = Installation(CapImage("scheduler:1"))
TEMPLATE: Json = {
    "metadata": {"labels": {"gpu-scheduler.io/gpu": "0.5"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}


def manifest(kind: str, **spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}, "spec": spec}


KINDS: dict[str, tuple[Json, tuple[Any, ...]]] = {
    "Deployment": (manifest("Deployment", template=TEMPLATE), ("spec", "template")),
    "CronJob": (
        manifest("CronJob", jobTemplate={"spec": {"template": TEMPLATE}}),
        ("spec", "jobTemplate", "spec", "template"),
    ),
    "RayCluster": (
        manifest("RayCluster", workerGroupSpecs=[{"replicas": 2, "template": TEMPLATE}]),
        ("spec", "workerGroupSpecs", 0, "template"),
    ),
    "PyTorchJob": (
        manifest("PyTorchJob", pytorchReplicaSpecs={"Worker": {"template": TEMPLATE}}),
        ("spec", "pytorchReplicaSpecs", "Worker", "template"),
    ),
    "Pod": ({"kind": "Pod", **TEMPLATE}, ()),
    "List": ({"kind": "List", "items": [{"kind": "Pod", **TEMPLATE}]}, ("items", 0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pods_are_found_wherever_they_stand(kind: str) -> None:
    document, path = KINDS[kind]
    found = yaml.safe_load(rendered(yaml.safe_dump(document), GIVEN))
    for step in path:
        found = found[step]
    spec = found["spec"]
    assert spec["runtimeClassName"] == "nvidia"
    assert found["metadata"]["labels"]["gpu-scheduler.io/share"] == "rendered"
    assert ("schedulingGates" in spec) is (kind in ("Pod", "List"))


def test_what_does_not_ask_stays_as_it_was() -> None:
    documents = [
        manifest("Deployment", template={"spec": TEMPLATE["spec"]}),
        {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "spec": {"template": TEMPLATE},
        },
        {"kind": "ConfigMap", "data": {"a": "b"}},
        ["no", "manifest"],
        "text",
    ]
    text = rendered(yaml.safe_dump_all(documents), GIVEN)
    assert list(yaml.safe_load_all(text)) == documents


def test_rendering_again_changes_nothing() -> None:
    once = rendered(yaml.safe_dump(KINDS["Deployment"][0]), GIVEN)
    assert rendered(once, GIVEN) == once


def test_each_problem_is_a_line_with_file_object_and_field() -> None:
    bad = {**TEMPLATE, "metadata": {"annotations": {"gpu-scheduler.io/gpu": "1.5"}}}
    with pytest.raises(RenderError) as error:
        rendered(yaml.safe_dump(manifest("Deployment", template=bad)), GIVEN, "web.yaml")
    (line,) = error.value.problems
    assert line.startswith("web.yaml: Deployment it: spec.template.metadata.annotations[")
    assert "whole numbers" in line


@pytest.mark.parametrize("compat", [None, *Compat])
def test_an_init_container_that_asks_in_vain_is_named(compat: Compat | None) -> None:
    key = "gpu-scheduler.io/gpu-mib" if compat is None else "nvidia.com/gpu"
    first = {"name": "first", "image": "x", "resources": {"limits": {key: 9000}}}
    spec = {"containers": [{"name": "main", "image": "x"}], "initContainers": [first]}
    text = yaml.safe_dump(manifest("Deployment", template={"spec": spec}))
    with pytest.raises(RenderError) as refused:
        rendered(text, GIVEN, "file.yaml", compat)
    (problem,) = refused.value.problems
    assert f"spec.template.spec.initContainers[0].resources.limits[{key}]" in problem
    assert "init container first ends before the others start" in problem


def test_the_command(tmp_path: Any) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(yaml.safe_dump(KINDS["Deployment"][0]))
    bad.write_text("a: [")
    ran = CliRunner().invoke(app, ["render", "-f", str(good), "-f", str(good), "--image", "i:2"])
    assert ran.exit_code == 0, ran.output
    found = list(yaml.safe_load_all(ran.stdout))
    assert len(found) == 2
    assert found[0]["spec"]["template"]["spec"]["initContainers"][0]["image"] == "i:2"
    ran = CliRunner().invoke(app, ["render", "-f", str(good), "-f", str(bad), "-f", "absent"])
    assert ran.exit_code == 1
    assert ran.stdout == ""
    assert "bad.yaml" in ran.stderr and "absent" in ran.stderr
    piped = CliRunner().invoke(app, ["render", "-f", "-"], input=good.read_text())
    assert piped.exit_code == 0
    assert CliRunner().invoke(app, ["render", "-f", "-", "--isolation", "no"]).exit_code == 2


def test_what_does_not_count_is_a_warning() -> None:
    beside = manifest("Deployment", template={"spec": TEMPLATE["spec"]})
    beside["metadata"]["labels"] = {"gpu-scheduler.io/gpu": "0.5"}
    pod = {"kind": "Pod", "metadata": {"name": "nb", "labels": {"gpu-scheduler.io/gpus": "1"}}}
    text = yaml.safe_dump_all([beside, {**pod, "spec": TEMPLATE["spec"]}])
    ran = CliRunner().invoke(app, ["render", "-f", "-"], input=text)
    assert ran.exit_code == 0
    assert ran.stderr.splitlines() == [
        "Warning: -: Deployment it: metadata.labels[gpu-scheduler.io/gpu]: counts on pods alone; "
        "write it into spec.template.metadata.labels",
        "Warning: -: Pod nb: metadata.labels[gpu-scheduler.io/gpus]: is unknown; "
        "write gpu-scheduler.io/gpu",
    ]


@pytest.mark.parametrize("path", sorted(ANY_POD.glob("*.yml")), ids=lambda path: path.stem)
def test_every_example_asks_and_can_be_made(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    namespaces = [each for each in documents if each["kind"] == "Namespace"]
    compat = [Compat(each["metadata"]["labels"][COMPAT]) for each in namespaces]
    text = rendered(path.read_text(), GIVEN, path.name, compat[0] if compat else None)
    with_pods = [each for each in yaml.safe_load_all(text) if [*templates(each)]]
    assert with_pods
    for document in with_pods:
        assert "gpu-scheduler.io/asked" in yaml.safe_dump(document)


def test_the_command_reads_other_schedulers_keys_where_it_is_told() -> None:
    text = (ANY_POD / "hami.yml").read_text()
    plain = CliRunner().invoke(app, ["render", "-f", "-"], input=text)
    assert plain.exit_code == 0 and "asked" not in plain.stdout
    told = CliRunner().invoke(app, ["render", "-f", "-", "--compat", "hami"], input=text)
    assert told.exit_code == 0 and "nvidia.com/gpumem=3000" in told.stdout
    assert CliRunner().invoke(app, ["render", "-f", "-", "--compat", "x"]).exit_code == 2
