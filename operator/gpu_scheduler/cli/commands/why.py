"""``kubectl gpu why``."""

import json
import time
from typing import Any

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.shown import console, output_option, plain, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

_AGAIN_SECONDS = 2.0
_pause = time.sleep


@click.command("why")
@click.argument("what", metavar="JOB|POD|KIND/NAME")
@click.option("--watch", "-w", is_flag=True, help="Ask again, and print what has changed.")
@output_option("table", "json", "yaml")
@of_cluster
def command(where: ClusterOptions, what: str, watch: bool, output: str) -> None:
    """Why something waits, and when it may start.

    Asked about is a GPUJob or a pod by its name, or any workload as KIND/NAME, such as
    deploy/server: of that the first pod that waits, or why it has none. Reason and sentence are
    those that the operator, or who may not make the pods, has written; what is before it, which
    node comes closest and when it may start is asked of the planner. For that the right to read
    nodes and pods of the whole cluster is needed.
    """
    with where.cluster() as cluster:
        if not watch:
            _print(_ask(cluster, what), output)
            return
        try:
            _watch(cluster, what, output)
        except KeyboardInterrupt:
            return


def _watch(cluster: ClusterAccess, what: str, output: str) -> None:
    shown = ""
    while True:
        found = _ask(cluster, what)
        told = json.dumps(_lasting(found))
        if told != shown:
            if shown and output != "json":
                say("---")
            _print(found, output)
            shown = told
        _pause(_AGAIN_SECONDS)


def _lasting(found: dict[str, Any]) -> dict[str, Any]:
    """Without what is another one whenever it is worked out."""
    estimate = {**(found["estimate"] or {}), "startsBy": None}
    return {**found, "estimate": estimate}


def _ask(cluster: ClusterAccess, what: str) -> dict[str, Any]:
    from gpu_scheduler.cli.finding import NoPodsError, find, maker_of
    from gpu_scheduler.kube.times import utc_now
    from gpu_scheduler.simulate.explanation import Subject, explain

    try:
        found = find(cluster, what)
        maker = maker_of(cluster, found) if found.job is None else None
    except NoPodsError as error:
        found, maker = error.found, error.maker
    subject = Subject(found.kind, found.namespace, found.name, found.job, found.pods, maker)

    def read() -> Any:
        from gpu_scheduler.simulate.cluster_read import read

        return read(cluster.client)

    def rules() -> Any:
        from gpu_scheduler.simulate.operator_rules import rules_of

        return rules_of(cluster.client)

    return explain(subject, read, utc_now(), rules)


def _print(found: dict[str, Any], output: str) -> None:
    import sys

    from gpu_scheduler.kube.times import utc_now
    from gpu_scheduler.simulate.explanation_text import lines

    if output != "table":
        print_value(found, output)
        return
    if not sys.stdout.isatty():
        for line in lines(found, utc_now()):
            say(line.text)
        return
    from rich.text import Text

    target = console()
    for line in lines(found, utc_now(), target.width):
        target.print(Text(plain(line.text), style=line.style), soft_wrap=True)
