"""The dashboard of the demo: built beside everything else, installed, and opened.

Nobody waits for it who does not want it: where its front end is built, the chart is installed with
it at once; else without it, and changed when all else has been shown. An image keeps disks and
processors busy, so that with the front end is built beside what comes after the first picture. No
way to it stays open behind the demo: a port that is forwarded belongs to who looks, and ends with
Ctrl-C.
"""

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from threading import Event

from cluster import ClusterError, Running
from cluster.ports import BLOCK
from demo import front_end, install
from demo.terminal import step

# A short span, so that a demo of minutes shows what a cluster shows in hours.
IDLE_SECONDS = 120


def options(running: Running) -> tuple[str, ...]:
    """What helm is told: the dashboard, and a history that goes with the cluster."""
    history = f"enabled=true,megabytes=8,idleSeconds={IDLE_SECONDS}".split(",")
    folder = running.folder / "history"
    return (
        "--set=dashboard.enabled=true,dashboard.actions=true",
        # The library for pods comes from the one image that the node has.
        f"--set=isolation.image={install.dashboard_image()}",
        "--set=" + ",".join(f"agent.history.{each}" for each in (*history, f"folder={folder}")),
    )


class Dashboard:
    """The images of the release, with the dashboard as soon as it is there."""

    def __init__(self, beside: Executor) -> None:
        """Everything is being built from now on."""
        self.at_once = False
        self._wanted = True
        self._pictured = Event()
        self._front_end = beside.submit(front_end.build)
        self.images = beside.submit(self._first)
        self._more = beside.submit(self._later)

    def go_on(self) -> None:
        """All that comes first has been shown."""
        self._pictured.set()

    def give_up(self) -> None:
        """Nobody will ask for more."""
        self._wanted = False
        self._pictured.set()

    def install(self, running: Running, archives: Sequence[Path]) -> bool:
        """The chart with the images that were first; False when just that was there."""
        image = install.give_images(running, archives)
        more = options(running) if self.at_once else ()
        return install.chart(running, image=image, more=more)

    def add(self, running: Running) -> str:
        """Have the dashboard in the release; why that is not possible, else empty."""
        self.go_on()
        if self.at_once:
            return ""
        with step("the dashboard's front end, and an image with it, built meanwhile") as said:
            archives, why = self._built()
            if why:
                said.append("not possible here")
                return why
        with step("helm upgrade gpu-scheduler: dashboard and history"):
            image = install.give_images(running, archives)
            install.chart(running, image=image, more=options(running))
        return ""

    def _first(self) -> tuple[Path, ...]:
        self.at_once = front_end.is_there(self._front_end)
        return install.build_images(dashboard=self.at_once)

    def _built(self) -> tuple[Sequence[Path], str]:
        """The images with it, or why there are none."""
        if why := self._front_end.result():
            return (), why
        try:
            return self._more.result(), ""
        except ClusterError as error:
            return (), str(error)

    def _later(self) -> tuple[Path, ...]:
        self._pictured.wait()
        if self.at_once or not self._wanted or self._front_end.result():
            return ()
        front_end.give_way()
        return install.build_images(dashboard=True)


def is_served(running: Running) -> bool:
    """Whether the release has it."""
    ports = "jsonpath={.spec.template.spec.containers[*].ports[*].name}"
    where = ("deployment", install.RELEASE, "-n", install.RELEASE, "--ignore-not-found")
    return "dashboard" in running.kubectl("get", *where, "-o", ports).stdout.split()


def port(running: Running) -> int:
    """Of this machine: the last of the cluster's own, which none of its programs takes."""
    return running.state.first_port + BLOCK - 1


def address(running: Running) -> str:
    """Where it is seen while somebody looks."""
    return f"http://127.0.0.1:{port(running)}"


def look(running: Running, more: Sequence[str]) -> None:
    """Become `kubectl gpu dashboard` on the demo's cluster.

    Raises:
        ClusterError: it is not served.
    """
    if not is_served(running):
        raise ClusterError("it runs without the dashboard; `make demo` says what that lacks")
    programs = install.command(running)
    environment = {**os.environ, **running.environment}
    environment["PATH"] = f"{programs}:{os.environ.get('PATH', os.defpath)}"
    command = [str(programs / "kubectl-gpu"), "dashboard", "--port", str(port(running)), *more]
    os.execve(command[0], command, environment)
