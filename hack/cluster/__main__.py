"""The local cluster's commands: `python -m cluster build | mirror | pin | up | down | …`."""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cache_folder import cache_folder
from cluster import build, fetch_pins, mirror, pin
from cluster.errors import ClusterError
from cluster.lifecycle import connect, down, names, up
from cluster.programs import GROUPS
from cluster.progress import say
from cluster.settings import Settings

_DEFAULT_NODES = Path(__file__).parents[2] / "tests" / "fixtures" / "clusters" / "dell-saas.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except ClusterError as error:
        say(f"error: {error}")
    except KeyboardInterrupt:
        say("interrupted; what was started has been cleaned up")
    return 1


def _build(options: argparse.Namespace) -> int:
    build.ensure(options.groups or ("core",))
    return 0


def _mirror(options: argparse.Namespace) -> int:
    left_out = mirror.fill(options.folder, fetch_pins.read())
    for sentence in left_out:
        say(f"left out: {sentence}")
    return 1 if left_out else 0


def _pin(options: argparse.Namespace) -> int:
    pins = pin.with_built(fetch_pins.read())
    problems: list[str] = []
    if not options.built:
        pins, problems = pin.with_published(pins)
    fetch_pins.write(pins)
    for sentence in problems:
        say(f"not pinned: {sentence}")
    say(f"written: {fetch_pins.PINS_FILE}")
    return 1 if problems else 0


def _up(options: argparse.Namespace) -> int:
    settings = Settings(
        name=options.name,
        nodes=tuple(options.nodes if options.nodes is not None else [_DEFAULT_NODES]),
        qps=options.qps,
        real_node=options.real_node,
        audit=options.audit,
        feature_gates=tuple(options.feature_gate),
        port=options.port,
    )
    started = time.monotonic()
    running = up(settings, recreate=options.recreate)
    say(f"cluster {running.name} is up after {time.monotonic() - started:.1f} s: {running.server}")
    say(f'to use it: eval "$(PYTHONPATH=hack python -m cluster env --name {running.name})"')
    return 0


def _down(options: argparse.Namespace) -> int:
    for name in names() if options.all else [options.name]:
        say(f"cluster {name}: " + ("stopped" if down(name) else "there is none"))
    return 0


def _status(options: argparse.Namespace) -> int:
    found = names()
    if not found:
        print("no cluster")
    for name in found:
        running = connect(name)
        if running is None or not running.is_healthy():
            print(f"{name}: broken; `up --name {name}` or `down --name {name}` cleans it up")
            continue
        nodes = "with a real node" if running.state.real_node else "fake nodes only"
        print(f"{name}: healthy, {running.server}, {nodes}, {running.folder}")
    return 0


def _env(options: argparse.Namespace) -> int:
    running = connect(options.name)
    if running is None:
        raise ClusterError(f"cluster {options.name} does not run: `up --name {options.name}`")
    for name, value in running.environment.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(running.link_programs()))}:"$PATH"')
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cluster",
        description="A local Kubernetes cluster with fake nodes and, as root, one real node.",
        epilog=f"Everything it writes is under {cache_folder()} (GPU_SCHEDULER_CACHE moves it).",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("build", help="fetch or build the programs that are missing")
    command.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    command.set_defaults(command=_build)

    command = commands.add_parser(
        "mirror", help="fill a folder for GPU_SCHEDULER_MIRROR from the programs in the cache"
    )
    command.add_argument("folder", type=Path, metavar="FOLDER")
    command.set_defaults(command=_mirror)

    command = commands.add_parser(
        "pin", help="write the digests of released programs, and of those built here, to pins.json"
    )
    command.add_argument("--built", action="store_true", help="only those built here; no network")
    command.set_defaults(command=_pin)

    command = commands.add_parser("up", help="start a cluster; one that runs is kept")
    _name(command)
    command.add_argument(
        "--nodes", nargs="*", type=Path, metavar="FILE", help="Node objects; none given: no nodes"
    )
    command.add_argument("--qps", type=int, help="client limit of controllers and scheduler")
    command.add_argument(
        "--real-node", action=argparse.BooleanOptionalAction, default=False, help="needs root"
    )
    command.add_argument("--recreate", action="store_true", help="stop one of that name first")
    command.add_argument("--audit", action="store_true", help="log each request")
    command.add_argument("--feature-gate", action="append", default=[], metavar="NAME=BOOL")
    command.add_argument("--port", type=int, help="first port; by default a free block")
    command.set_defaults(command=_up)

    command = commands.add_parser("down", help="stop a cluster and delete all that it wrote")
    _name(command)
    command.add_argument("--all", action="store_true", help="stop all clusters")
    command.set_defaults(command=_down)

    commands.add_parser("status", help="show all clusters").set_defaults(command=_status)

    command = commands.add_parser("env", help="print what a shell needs to use a cluster")
    _name(command)
    command.set_defaults(command=_env)
    return parser


def _name(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", default="dev", help="of the cluster, default dev")


if __name__ == "__main__":
    sys.exit(main())
