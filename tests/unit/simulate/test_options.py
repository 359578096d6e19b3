"""What ``kubectl gpu simulate`` refuses without a cluster, and whose options are whose."""

import pytest
from click import Command
from click.testing import CliRunner
from tests.perf.replay.__main__ import command as replay
from tests.perf.sharing.__main__ import command as sharing

from gpu_scheduler.cli.commands.simulate import command as simulate
from gpu_scheduler.main import app


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--preemption", "fair,strict"], "--preemption fair,strict: on a cluster one of them"),
        (["--preemption", "kind"], "--preemption kind: one of fair"),
        (["--preemption", "strict", "--patience-seconds", "1"], "is for --preemption fair"),
        (["--policy", "worst-fit"], "--policy worst-fit: one of fragmentation"),
    ],
)
def test_simulate_refuses_before_it_asks_a_cluster(options: list[str], says: str):
    result = CliRunner(env={"KUBECONFIG": "/nowhere"}).invoke(app, ["simulate", *options])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


ONLY = {
    "simulate": {"--filename", "--remove", "--context", "--consolidation"},
    "replay": {"--arrive", "--releasing"},
    "sharing": {"--load", "--hours", "--checkpoint-seconds"},
}


@pytest.mark.parametrize(
    ("name", "command"), [("simulate", simulate), ("replay", replay), ("sharing", sharing)]
)
def test_no_option_of_one_is_an_option_of_another_subject(name: str, command: Command):
    options = {option for each in command.params for option in each.opts}
    assert ONLY[name] <= options
    assert not options & {option for other in ONLY if other != name for option in ONLY[other]}
