"""``kubectl gpu dashboard``: the cluster in a browser, logged in as the kubeconfig's user."""

import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import click

from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.where import ClusterOptions, of_whole_cluster, operator_namespace_option

if TYPE_CHECKING:
    import subprocess

_PAUSE_SECONDS = 2.0


@click.command("dashboard")
@click.option("--no-browser", is_flag=True, help="Print the address alone, and paste the token.")
@click.option(
    "--print-token", is_flag=True, help="Print the token to paste, and nothing else; then end."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of this machine; 0 = any.")
@operator_namespace_option
@of_whole_cluster
def command(
    where: ClusterOptions, no_browser: bool, print_token: bool, port: int, operator_namespace: str
) -> None:
    """Open the dashboard in a browser, until Ctrl-C.

    A port of this machine leads to the leader's pod, also when another one leads. The browser gets
    the token of the kubeconfig by a page that answers once, and no program's arguments hold it.
    """
    from gpu_scheduler.cli.dashboard.token import login_token

    if print_token:
        with where.cluster() as cluster:
            click.echo(login_token(cluster, operator_namespace)[0])
        return
    opened = no_browser
    ended = signal.signal(signal.SIGTERM, signal.default_int_handler)  # kubectl has to end too
    try:
        while True:
            port = _forward(where, operator_namespace, port, opened=opened)
            opened = True
    except KeyboardInterrupt:
        say("", err=True)
    finally:
        signal.signal(signal.SIGTERM, ended)


def _forward(where: ClusterOptions, namespace: str, port: int, *, opened: bool) -> int:
    """Forward until it breaks; the port that is kept."""
    import time

    from gpu_scheduler.cli.dashboard.forwarding import forwarded
    from gpu_scheduler.cli.dashboard.leader import leader
    from gpu_scheduler.cli.one_pod.kubectl import line_of

    try:
        with where.cluster() as cluster:
            there = leader(cluster, namespace)
        arguments = [f"--namespace={namespace}", "--address=127.0.0.1", f"pod/{there.pod}"]
        line = line_of(where, ["port-forward", *arguments, f"{port or ''}:{there.port}"])
        with forwarded(line) as (process, port_here):
            say(f"http://127.0.0.1:{port_here} leads to {there.pod}; Ctrl-C ends it", err=True)
            if not opened:
                _open(where, namespace, f"http://127.0.0.1:{port_here}/")
            port = port_here
            _wait(process)
        say("the way to the leader has broken; it is looked for again", err=True)
    except Failed as error:
        if not port:
            raise
        say(str(error), err=True)
    time.sleep(_PAUSE_SECONDS)
    return port


def _wait(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    for _ in process.stdout:  # a line for each connection
        pass
    process.wait()


def _open(where: ClusterOptions, namespace: str, address: str) -> None:
    import webbrowser

    from gpu_scheduler.cli.dashboard.handing_over import HandOver, can_tell, owner_of
    from gpu_scheduler.cli.dashboard.token import login_token

    if not can_tell():
        say("this system does not say who asks, so paste the token: --print-token", err=True)
        webbrowser.open(address)
        return
    with where.cluster() as cluster:
        token, said = login_token(cluster, namespace)
    if said:
        say(said, err=True)
    page = HandOver(f"{address}#token={token}", os.getuid(), owner_of)
    with closing(page):
        came = webbrowser.open(page.address) and page.serve()
    if not came:
        say(f"no browser came: open {address} and paste the token of --print-token", err=True)
