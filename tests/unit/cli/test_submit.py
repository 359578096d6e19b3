"""``kubectl gpu submit``: what a command line and a file mean, without a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.validate import problems, read
from gpu_scheduler.cli.root import app

FILE = """
apiVersion: gpu-scheduler.io/v1alpha1
kind: GPUJob
metadata: {name: filed, labels: {team: a}, resourceVersion: "7", uid: u}
spec: {image: old:1, gpu: 0.5, args: [--from, file], env: [{name: A, value: old}], priority: 7}
status: {phase: Failed}
"""


def call(*arguments: str, stdin: str | None = None) -> Result:
    """Where any request would fail: there is no cluster."""
    runner = CliRunner()
    env = {"KUBECONFIG": "/nowhere/config"}
    return runner.invoke(app, ["submit", *arguments], prog_name="kubectl gpu", env=env, input=stdin)


def made(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    result = call("--dry-run=client", "-o", "json", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def spec(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    return dict(made(*arguments, stdin=stdin)["spec"])


def refused(*arguments: str, stdin: str | None = None) -> str:
    result = call("--dry-run=client", *arguments, stdin=stdin)
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    return result.stderr


BASE = ("x", "-i", "img", "-g", "0.5")


def test_what_follows_the_two_hyphens_goes_to_the_program_untouched() -> None:
    found = spec(*BASE, "--", "--user_arg", "1", "-g", "9", "\u2013g", "--", "--help", "")
    assert found["args"] == ["--user_arg", "1", "-g", "9", "\u2013g", "--", "--help", ""]
    assert found["gpu"] == 0.5


def test_nothing_behind_the_hyphens_leaves_the_arguments_to_the_image() -> None:
    assert "args" not in spec(*BASE, "--")


@pytest.mark.parametrize("dash", ["\u2013", "\u2014", "\u2013\u2013", "-\u2013"])
def test_dashes_of_a_pdf_are_hyphens(dash: str) -> None:
    found = spec(
        "x", f"{dash}image", "img", f"{dash}g", "0.5", f"{dash}gpu-devices=2", f"{dash}e", "A=1"
    )
    assert found == {
        "image": "img",
        "gpu": 0.5,
        "gpuDevices": 2,
        "env": [{"name": "A", "value": "1"}],
    }


@pytest.mark.parametrize("dashes", ["\u2014", "\u2013\u2013"])
def test_a_dash_that_stands_for_two_hyphens_ends_the_options(dashes: str) -> None:
    assert spec(*BASE, dashes, "\u2014x", "-g", "2")["args"] == ["\u2014x", "-g", "2"]


def test_the_value_of_an_option_keeps_its_dash() -> None:
    assert spec(*BASE, "--working-dir", "\u2013x")["workingDir"] == "\u2013x"


def test_a_command_replaces_the_images_program() -> None:
    found = spec(*BASE, "--command", "--job-dir", "/runs/1", "--", "python", "t.py")
    assert found["command"] == ["python", "t.py"]
    assert found["args"] == ["--job-dir", "/runs/1"]
    assert found["env"] == [{"name": "JOB_DIR", "value": "/runs/1"}]
    assert "nothing follows" in refused(*BASE, "--command")


def test_the_job_dir_stands_behind_the_arguments() -> None:
    assert spec(*BASE, "--job-dir", "d", "--", "-x")["args"] == ["-x", "--job-dir", "d"]


def test_volumes_make_a_template_of_the_same_container() -> None:
    found = spec(
        *BASE,
        "-v",
        "/data:/d:ro",
        "-v",
        "claim:/c",
        "-v",
        "/e:/n:rw:nfs.example",
        "--pvc",
        "claim:/c2",
        "--large-shm",
        "--host-ipc",
        "--run-as-uid",
        "7",
        "--cpu",
        "2",
        "--memory-limit",
        "4Gi",
        "--",
        "a",
    )
    assert set(found) == {"gpu", "template"}
    pod = found["template"]["spec"]
    assert (pod["hostIPC"], pod["securityContext"]) == (True, {"runAsUser": 7})
    assert pod["automountServiceAccountToken"] is False, "as in the short form"
    assert pod["volumes"] == [
        {"name": "volume-0", "hostPath": {"path": "/data"}},
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "volume-2", "nfs": {"server": "nfs.example", "path": "/e"}},
        {"name": "volume-3", "emptyDir": {"medium": "Memory"}},
    ]
    (main,) = pod["containers"]
    assert (main["image"], main["args"]) == ("img", ["a"])
    assert main["resources"] == {"requests": {"cpu": "2"}, "limits": {"memory": "4Gi"}}
    assert main["volumeMounts"] == [
        {"name": "volume-0", "mountPath": "/d", "readOnly": True},
        {"name": "volume-1", "mountPath": "/c"},
        {"name": "volume-2", "mountPath": "/n"},
        {"name": "volume-1", "mountPath": "/c2"},
        {"name": "volume-3", "mountPath": "/dev/shm"},
    ]


def test_parameters_are_a_grid_with_the_types_of_their_values() -> None:
    found = spec(*BASE, "--param", "lr=0.1,1e-3", "--param", "n=32,007", "--param", "f=true,adam")
    assert found["sweep"] == {
        "algorithm": "grid",
        "parameters": {
            "lr": {"values": [0.1, 0.001]},
            "n": {"values": [32, "007"]},
            "f": {"values": [True, "adam"]},
        },
    }
    assert read(GPUJobSpec, found).total_pods == 8  # type: ignore[union-attr]


def test_flags_beat_the_file_and_what_they_do_not_say_stays(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(FILE)
    body = made(
        "-f", str(path), "named", "-i", "new:2", "-e", "A=new", "-e", "B=", "-l", "x=y", "--", "z"
    )
    assert body["metadata"] == {"name": "named", "labels": {"team": "a", "x": "y"}}
    assert "status" not in body
    assert body["spec"] == {
        "image": "new:2",
        "gpu": 0.5,
        "args": ["z"],
        "env": [{"name": "A", "value": "new"}, {"name": "B", "value": ""}],
        "priority": 7,
    }
    assert made("-f", str(path))["metadata"]["name"] == "filed"
    assert "gpu" not in spec("-f", str(path), "--gpu-memory", "8Gi")


def test_a_file_is_read_from_standard_input_as_kubectl_reads_it() -> None:
    text = FILE.replace("gpu: 0.5", "gpu: 5e-1")
    assert spec("-f", "-", stdin=text)["gpu"] == 0.5


def test_flags_reach_the_first_container_of_a_template() -> None:
    text = """
{apiVersion: gpu-scheduler.io/v1alpha1, kind: GPUJob, metadata: {name: t},
spec: {gpu: 1, template: {spec: {
  volumes: [{name: volume-0, emptyDir: {}}], containers: [
    {name: a, image: one, volumeMounts: [{name: volume-0, mountPath: /d}]},
    {name: b, image: two}]}}}}"""
    pod = spec("-f", "-", "-i", "new", "-v", "/n:/d", stdin=text)["template"]["spec"]
    assert [each["image"] for each in pod["containers"]] == ["new", "two"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "volume-1", "mountPath": "/d"}]
    assert [each["name"] for each in pod["volumes"]] == ["volume-0", "volume-1"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (FILE + "---" + FILE, "2 documents"),
        ("", "0 documents"),
        ("{kind: Deployment, apiVersion: apps/v1}", "kubectl apply"),
        ("{kind: GPUJob, apiVersion: example.com/v1}", "not a GPUJob"),
        ("[1, 2]", "no object"),
        ("a: [", "no YAML"),
        ("x: 2026-13-45", "no version"),
        (FILE.replace("gpu: 0.5", "gpu: lots"), "spec.gpu"),
        (FILE.replace("priority", "prioritty"), "no such field"),
        (FILE.replace("{image: old:1", "{template: {spec: {containers: x}}"), "containers"),
        (FILE.replace("labels: {team: a}", "labels: 3"), "labels"),
        (
            "{kind: GPUJob, apiVersion: gpu-scheduler.io/v1alpha1, metadata: {name: x}, spec: 7}",
            "spec",
        ),
    ],
)
def test_a_file_that_is_no_single_gpujob_is_refused(text: str, word: str) -> None:
    assert word in refused("-f", "-", stdin=text)


def test_a_file_that_is_not_there() -> None:
    assert "/nowhere/job.yaml" in refused("-f", "/nowhere/job.yaml")


def test_names_that_others_have_for_the_same() -> None:
    other = spec(
        "--name",
        "x",
        "-i",
        "img",
        "--gpu-portion-request",
        "0.5",
        "--gpu-devices-request",
        "2",
        "--environment",
        "A=1",
        "--backoff-limit=0",
        "--cpu-core-request",
        "3",
        "--cpu-memory-request=8G",
        "--existing-pvc",
        "claimname=c,path=/c",
        "--ttl-after-finish",
        "1h30m",
        "--preemptible",
    )
    same = spec(
        *BASE,
        "--gpu-devices",
        "2",
        "-e",
        "A=1",
        "--retries",
        "0",
        "--cpu",
        "3",
        "--memory",
        "8G",
        "--pvc",
        "c:/c",
        "--ttl-after-finish",
        "5400",
    )
    assert other == same
    assert spec("x", "-i", "img", "--gpu-devices-request", "2")["gpu"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--service-type", "nodeport"], ("--service-type", "port-forward")),
        (["--node-type=A100"], ("--node-type", "--gpu-models")),
        (["--job-name-prefix", "x"], ("--job-name-prefix", "NAME")),
        (["--jupyter"], ("--jupyter", "--interactive")),
        (["--preemptible", "--interactive"], ("--preemptible", "--interactive")),
        (["--mig-profile", "1g"], ("--mig-profile", "--gpu")),
    ],
)
def test_what_cannot_be_meant_names_the_flag_and_the_way_out(
    arguments: list[str], words: tuple[str, ...]
) -> None:
    said = refused(*BASE, *arguments)
    assert said.count("\n") == 1
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "NAME is missing"),
        (["x"], "--image IMAGE"),
        (["x", "-i", "img"], "--gpu 0.5"),
        (["x", "-i", "", "-g", "1"], "image"),
        (["", "-i", "img", "-g", "1"], "NAME is missing"),
        (["X", "-i", "img", "-g", "1"], "lower case"),
        (["a/b", "-i", "img", "-g", "1"], "a job's name"),
        (["\u00fc", "-i", "img", "-g", "1"], "a job's name"),
        (["a.b", "-i", "img", "-g", "1"], "dot"),
        (["a" * 63, "-i", "img", "-g", "1"], "NAME"),
        (["x", "y", "-i", "img", "-g", "1"], "one name too many"),
        (["x", "--name", "y", "-i", "img", "-g", "1"], "differ"),
        (["x", "-i", "img", "-g", "0,5"], "write 0.5"),
        (["x", "-i", "img", "-g", ""], "--gpu"),
        (["x", "-i", "img", "-g", "nan"], "--gpu"),
        (["x", "-i", "img", "-g", "\u0661"], "--gpu"),
        (["x", "-i", "img", "-g", "0"], "above 0"),
        (["x", "-i", "img", "-g", "-1"], "above 0"),
        (["x", "-i", "img", "-g", "1.5"], "--gpu-devices"),
        (["x", "-i", "img", "-g", "0.0001"], "three decimals"),
        (["x", "-i", "img", "-g", "9" * 60], "--gpu"),
        (["x", "-i", "img", "-g", "9" * 6000], "--gpu"),
        (["x", "-i", "img", "--gpu-memory", "8Qi"], "--gpu-memory"),
        (["x", "-i", "img", "--gpu-memory", ""], "--gpu-memory"),
        (["x", "-i", "img", "-g", "1", "--gpu-memory", "8Gi"], "--gpu and --gpu-memory"),
        ([*BASE, "--gpu-devices", "0"], "--gpu-devices"),
        ([*BASE, "--gpu-models", ""], "--gpu-models"),
        ([*BASE, "--gpu-models", "A100,"], "--gpu-models"),
        ([*BASE, "--shape", "s"], "--gpu and --shape"),
        ([*BASE, "--priority", "101"], "--priority"),
        ([*BASE, "--priority=-1"], "--priority"),
        ([*BASE, "--parallelism", "0"], "--parallelism"),
        ([*BASE, "--completions", "999999999999999999999"], "--completions"),
        ([*BASE, "--retries", "-1"], "--retries"),
        ([*BASE, "--time-limit", "soon"], "--time-limit"),
        ([*BASE, "--time-limit", ""], "--time-limit"),
        ([*BASE, "--time-limit", "0"], "--time-limit"),
        ([*BASE, "--ttl-after-finish", "-5m"], "--ttl-after-finish"),
        ([*BASE, "--ttl-after-finish", "9" * 18], "--ttl-after-finish"),
        ([*BASE, "--param", "lr"], "--param"),
        ([*BASE, "--param", "lr="], "--param"),
        ([*BASE, "--param", "lr=1,"], "--param"),
        ([*BASE, "--param", "=1"], "--param"),
        ([*BASE, "--param", "-lr=1"], "--param"),
        ([*BASE, "--param", "lr=1e400"], "--param lr"),
        ([*BASE, "--param", "lr=1e-400"], "--param lr"),
        ([*BASE, "--param", "lr=1", "--param", "lr=2"], "twice"),
        ([*BASE, "-v", "data"], "--volume"),
        ([*BASE, "-v", ""], "--volume"),
        ([*BASE, "-v", "/a:b"], "--volume"),
        ([*BASE, "-v", "/a:/b:rx"], "--volume"),
        ([*BASE, "-v", "Claim:/b"], "claim"),
        ([*BASE, "-v", "/a:/b", "-v", "/c:/b"], "/b"),
        ([*BASE, "--pvc", "size=1,path=/x"], "--pvc"),
        ([*BASE, "-e", "A"], "--env"),
        ([*BASE, "-e", ""], "--env"),
        ([*BASE, "-e", "=1"], "--env"),
        ([*BASE, "-e", "NVIDIA_VISIBLE_DEVICES=all"], "NVIDIA_VISIBLE_DEVICES"),
        ([*BASE, "-l", "x"], "--label"),
        ([*BASE, "--cpu", "many"], "--cpu"),
        ([*BASE, "--memory", ""], "--memory"),
        ([*BASE, "--job-dir", ""], "--job-dir"),
        ([*BASE, "-n", "Team A"], "a namespace"),
        ([*BASE, "-p", "vision"], "-n NAMESPACE"),
        ([*BASE, "--attach"], "--attach"),
        ([*BASE, "--", "\udcff"], "UTF-8"),
        ([*BASE, "-e", "A=\udcff"], "UTF-8"),
        ([*BASE, "--run-as-uid", "-1"], "--run-as-uid"),
        ([*BASE, "--dry-run=maybe"], "--dry-run"),
        ([*BASE, "--unknown"], "--unknown"),
    ],
)
def test_odd_words_end_with_the_flag_that_was_wrong(arguments: list[str], word: str) -> None:
    assert word in refused(*arguments)


def test_everything_that_passes_is_accepted_by_the_operators_rules() -> None:
    body = made(*BASE, "--interactive", "--parallelism", "2", "--completions", "4", "-n", "team-a")
    assert body["metadata"] == {"name": "x", "namespace": "team-a"}
    model = read(GPUJobSpec, body["spec"])
    assert isinstance(model, GPUJobSpec) and problems("x", "team-a", model) == []
    assert (model.type, model.total_pods, model.pods_at_once) == ("interactive", 4, 2)


def test_what_is_printed() -> None:
    assert call(*BASE, "--dry-run=client").stdout == "gpujob.gpu-scheduler.io/x created (dry run)\n"
    assert call(*BASE, "--dry-run", "-o", "name").stdout == "gpujob.gpu-scheduler.io/x\n"
    assert call(*BASE, "--dry-run", "-o", "yaml").stdout.startswith("apiVersion: gpu-scheduler.io")


def test_without_a_cluster_there_is_one_line() -> None:
    result = call(*BASE)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("kubectl gpu: ")
