"""Brings clusters up and takes them down; the only module that creates run folders.

Every step can be cut off by a kill: `up` first clears away what an earlier run of the
same name left, and `down` ends whatever was started for the folder, written down or not.
"""

import hashlib
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from cache_folder import cache_folder
from cluster import build, control_plane, ports, process, service_address, store
from cluster.cache import cluster_folder, clusters_folder, lock_file
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.mounts import mounts_below
from cluster.programs import in_groups
from cluster.progress import say
from cluster.running import Running
from cluster.settings import Settings
from cluster.startup import start_control_plane
from cluster.state import State, load, save

# Nothing of a cluster is worth keeping, so nobody gets long to say goodbye.
_GRACE_SECONDS = 2.0


def up(settings: Settings, *, recreate: bool = False, archives: Sequence[Path] = ()) -> Running:
    """Brings the cluster of these settings up, or returns it when it already runs.

    Args:
        settings: what is wanted; a real node where that is not possible becomes none.
        recreate: stop a running cluster of that name first.
        archives: of images that a real node takes while the control plane starts.

    Raises:
        ClusterError: a cluster of that name runs with other settings, a program could not
            be built, or something did not start.
    """
    settings = _possible(settings)
    _clear_abandoned()
    build.ensure(("core", "node") if settings.real_node else ("core",))
    with _locked(settings.name):
        running = connect(settings.name)
        if running is not None and not recreate and running.state.ready and running.is_healthy():
            if running.state.fingerprint == _fingerprint(settings):
                return running
            raise ClusterError(
                f"cluster {settings.name} runs with other settings or other versions: "
                "use --recreate, or another --name"
            )
        _down(settings.name)
        return _start(settings, archives)


def connect(name: str) -> Running | None:
    """The cluster `name`, if there is one; it may be unhealthy."""
    folder = cluster_folder(name)
    return Running(name, folder) if load(folder) is not None else None


def down(name: str) -> bool:
    """Stops the cluster `name` and deletes its folder; False when there was none."""
    with _locked(name):
        return _down(name)


def names() -> list[str]:
    """The names of all clusters that have a run folder."""
    if not clusters_folder().is_dir():
        return []
    entries = clusters_folder().iterdir()
    return sorted(each.name for each in entries if each.is_dir() and not each.name.startswith("."))


def _locked(name: str) -> AbstractContextManager[None]:
    return exclusive(
        lock_file(name), on_wait=lambda: say(f"waiting for another command on cluster {name}")
    )


def _possible(settings: Settings) -> Settings:
    reason = service_address.why_no_real_node() if settings.real_node else None
    if reason is None:
        return settings
    say(f"no real node ({reason}): this cluster runs on fake nodes only")
    return replace(settings, real_node=False)


def _clear_abandoned() -> None:
    """Takes clusters down whose owner has ended; one that resists does not stop this run."""
    for name in names():
        state = load(cluster_folder(name))
        if state and state.owner and not process.is_alive(state.owner):
            say(f"cluster {name}: stopping it, the test run that started it has ended")
            try:
                down(name)
            except ClusterError as error:
                say(f"cluster {name}: {error}")


def _fingerprint(settings: Settings) -> str:
    """Equal when the same is asked for and would be done with the same programs."""
    programs = [build.path_of(program).parent.name for program in in_groups(("core", "node"))]
    parts = (settings.fingerprint(), *programs, control_plane.STAGES_FILE.read_text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _start(settings: Settings, archives: Sequence[Path]) -> Running:
    folder = cluster_folder(settings.name)
    with exclusive(lock_file(".ports")):
        state = _reserve(settings)
        folder.mkdir(parents=True, mode=0o700)
        store.create(folder)
        save(folder, state)
    running = Running(settings.name, folder)
    try:
        with ThreadPoolExecutor(1) as beside:
            if settings.real_node:
                from cluster import real_node  # its needs are those of a real node only

                service_address.add(settings.name)
                begun = beside.submit(real_node.begin, running, archives)
            start_control_plane(running, settings)
            for path in settings.nodes:
                running.add_nodes(path)
        if settings.real_node:
            begun.result()
            real_node.join(running)
    except BaseException:
        _keep_logs(settings.name)
        _down(settings.name)
        raise
    save(folder, replace(running.state, ready=True))
    return running


def _reserve(settings: Settings) -> State:
    """Chooses ports; call it under the lock for ports, and save the state before letting go."""
    states = [state for name in names() if (state := load(cluster_folder(name)))]
    first = settings.port or ports.choose({state.first_port for state in states})
    block = ports.block(first)
    if settings.real_node:
        block = replace(block, api_server=control_plane.REAL_NODE_PORT)
    return State(
        name=settings.name,
        fingerprint=_fingerprint(settings),
        first_port=first,
        ports=block,
        real_node=settings.real_node,
        gpus=settings.gpus,
        owner=None if settings.owner is None else process.running(settings.owner),
    )


def _down(name: str) -> bool:
    folder = cluster_folder(name)
    existed = folder.exists()
    running = connect(name)
    started = set(running.processes.values()) if running is not None else set()
    try:
        if running is not None and running.state.real_node:
            from cluster import real_node  # its needs are those of a real node only

            real_node.stop(running)
    finally:
        process.stop({*started, *process.marked_with(folder)}, grace_seconds=_GRACE_SECONDS)
        service_address.remove(name)
    # Deleting through a mount would delete what is mounted there.
    if mounts := mounts_below(folder):
        raise ClusterError(f"unmount these first, then try again: {', '.join(map(str, mounts))}")
    store.remove(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise ClusterError(f"{folder} could not be deleted; is it somebody else's?")
    return existed


def _keep_logs(name: str) -> None:
    """Keeps the logs of a start that failed; the next failure of that name replaces them."""
    kept = cache_folder() / "failed" / name
    shutil.rmtree(kept, ignore_errors=True)
    with suppress(OSError):
        shutil.copytree(cluster_folder(name) / "logs", kept)
        say(f"the logs are in {kept}")
