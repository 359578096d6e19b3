"""Sixty lines as people type them who come from Run:ai, kubectl or Kueue, one after the other.

``kubectl`` is one that says what it was told, for fake nodes run nothing that could be entered.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import click
from click.testing import CliRunner
from tests.api.tenant import Tenant, until

from cluster import Running
from gpu_scheduler.main import app

# What is typed, the exit code, and what the first line looks like, of output or else of errors.
LINES: Sequence[tuple[str, int, str]] = (
    # Run:ai's first command line
    ("submit job-1 -i example/placeholder:1 -g 0.5 -p {p}", 0, "gpujob.gpu-scheduler.io/job-1 cre"),
    ("list", 0, "No jobs in namespace default"),
    ("list jobs -p {p}", 0, "NAME +PROJECT"),
    ("list jobs -A", 0, "NAMESPACE +NAME"),
    ("list nodes", 0, "r7525-0 "),
    ("list projects", 0, "PROJECT|NAME"),
    ("describe job job-1 -p {p}", 0, "Name: +job-1"),
    ("describe job-1 -n {p} -o yaml", 0, "apiVersion: gpu-scheduler.io"),
    ("describe node r7525-0", 2, "gpu-scheduler: describe node: kubectl describe node"),
    ("logs job-1 -p {p} -f --tail 5", 0, "logs"),
    ("bash job-1 -p {p}", 0, "exec"),
    ("exec job-1 -p {p} -it -- nvidia-smi -L", 0, "exec"),
    ("attach job-1 -p {p}", 0, "attach"),
    ("port-forward job-1 -p {p} --port 8888:8888", 0, "port-forward"),
    ("port-forward job-1 -p {p}", 2, "gpu-scheduler: which port"),
    ("top node", 0, "r7525-0 "),
    ("top job", 0, "NAMESPACE/NAME"),
    ("suspend job-1 -p {p}", 0, "gpujob.gpu-scheduler.io/job-1 suspended"),
    ("resume job job-1 -p {p}", 0, "gpujob.gpu-scheduler.io/job-1 resumed"),
    ("delete job job-1 -p {p}", 0, "gpujob.gpu-scheduler.io/job-1 deleted"),
    ("whoami", 0, "User +[a-z]"),
    ("config project {p}", 0, "config"),
    ("config project nobody", 1, "gpu-scheduler: there is no project called nobody"),
    ("config cluster prod", 2, "gpu-scheduler: config cluster: .*kubectl config get-contexts"),
    ("login", 2, "gpu-scheduler: login: .*kubectl config get-contexts"),
    ("project list", 0, "PROJECT|NAME"),
    ("project show {p}", 0, "Name|Project"),
    ("project set {p}", 0, "config"),
    ("project create {p}", 2, "Usage: gpu-scheduler project create"),
    ("project delete {p}", 2, "gpu-scheduler: project delete: kubectl delete gpuproject"),
    ("submit-mpi train -i x", 2, "gpu-scheduler: submit-mpi: .*roles of a file"),
    ("inference submit api -i x", 2, "gpu-scheduler: inference: .*Deployment"),
    ("update job-1", 2, "gpu-scheduler: update: kubectl edit gpujob"),
    # its second one
    ("training submit tr -i example/placeholder:1 -g 0.25 -p {p}", 0, ".*/tr created"),
    ("workspace submit nb -i example/placeholder:1 -g 0.25 -p {p}", 0, ".*/nb created"),
    ("training list -p {p}", 0, "NAME +PROJECT"),
    ("workload describe nb -p {p}", 0, "Name: +nb"),
    ("workspace bash nb -p {p}", 0, "exec"),
    ("training pytorch submit x", 2, "gpu-scheduler: training pytorch: .*roles of a file"),
    ("workspace stop nb -p {p}", 0, ".*/nb suspended"),
    ("training delete tr -p {p}", 0, ".*/tr deleted"),
    # kubectl's verbs
    ("get", 0, "No jobs in namespace default"),
    ("get jobs -n {p}", 0, "NAME +PROJECT"),
    ("get gpujobs -n {p} -o name", 0, "gpujob.gpu-scheduler.io/nb"),
    ("get nodes", 0, "r7525-0 "),
    ("get job nb -n {p} -o json", 0, "{{"),
    ("-n {p} get jobs", 0, "NAME +PROJECT"),
    ("--namespace={p} describe gpujob nb", 0, "Name: +nb"),
    ("apply -f job.yaml", 2, "gpu-scheduler: apply: kubectl apply -f FILE"),
    ("create -f job.yaml", 2, "gpu-scheduler: create: kubectl apply -f FILE"),
    ("edit nb -n {p}", 2, "gpu-scheduler: edit: kubectl edit gpujob"),
    ("scale nb --replicas=2", 2, "gpu-scheduler: scale: kubectl patch gpujob"),
    ("wait nb", 2, "gpu-scheduler: wait: kubectl wait gpujob/NAME"),
    ("cp nb:/x .", 2, "gpu-scheduler: cp: kubectl cp"),
    ("help list", 0, "Usage: gpu-scheduler list"),
    ("drain r7525-0", 2, "gpu-scheduler: drain: kubectl drain"),
    # Kueue's
    ("list workloads -n {p}", 0, "NAME +PROJECT"),
    ("list clusterqueue", 0, "PROJECT|NAME"),
    ("list rf", 2, "gpu-scheduler: list rf: kubectl get gpuclasses"),
    ("resume workload nb -n {p}", 0, ".*/nb resumed"),
    ("stop workload nb -n {p}", 0, ".*/nb suspended"),
    ("create clusterqueue", 2, "Usage: gpu-scheduler project create"),
    # slips of the hand
    ("lst -n {p}", 2, "gpu-scheduler: there is no command .*did you mean gpu-scheduler list"),
    ("sbmit x", 2, "gpu-scheduler: there is no command .*did you mean gpu-scheduler submit"),
    ("top nods", 2, "gpu-scheduler: there is no command .*did you mean gpu-scheduler top nodes"),
    ("describe no-such-job -n {p}", 1, "gpu-scheduler: .*no-such-job"),
    ("describe nb -p no-such-project", 1, "gpu-scheduler: there is no project called no-such-pro"),
    ("delete jobs --all -n {p}", 0, "gpujob.gpu-scheduler.io/nb deleted"),
)


def test_each_is_understood_or_told_what_does_it(
    scheduled: Running, tenant: Tenant, tmp_path: Path
) -> None:
    assert len(LINES) >= 60
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    kubectl.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    runner = CliRunner(env={"KUBECONFIG": str(scheduled.kubeconfig), "PATH": path})
    wrong: list[str] = []
    with patch("os.execvp", become):
        for typed, code, first in LINES:
            words = shlex.split(typed.format(p=tenant.name))
            if words[0] == "logs" or words[:2] == ["workspace", "bash"]:
                wait_started(tenant, words[1 if words[0] == "logs" else 2])
            done = runner.invoke(app, words, prog_name="gpu-scheduler", catch_exceptions=False)
            said = (done.stdout or done.stderr).splitlines() or [""]
            if done.exit_code != code or not re.match(first.format(), said[0]):
                wrong.append(f"{typed}: {done.exit_code} {said[0]}")
    assert not wrong, "\n".join(wrong)


def become(program: str, arguments: Sequence[str]) -> NoReturn:
    """As execvp, in a process of its own."""
    done = subprocess.run(
        [program, *arguments[1:]], capture_output=True, text=True, check=False, timeout=30
    )
    click.echo(done.stdout, nl=False)
    raise click.exceptions.Exit(done.returncode)


def wait_started(tenant: Tenant, job: str) -> None:
    until(lambda: tenant.pods(job)[0]["status"]["phase"] == "Running", f"a pod of {job} runs")
