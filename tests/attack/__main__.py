"""``make attack MINUTES=15``: a tenant with ``edit`` in two namespaces does its worst, all at once.

A real API server with fake nodes, the chart's policies and roles, two replicas with the chart's
memory limit, and another tenant whose jobs are to run all the while. Prints a line a minute and a
page in the end; ends with 1 when a promise was broken: the operator's memory, its Lease, another
tenant's wait, what it asks of the API server, a pod with a GPU that nobody gave it. Needs root, for
the limits.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tests.attack import stand as place
from tests.attack.attacker import Scene
from tests.attack.attacks import ATTACKS
from tests.attack.given import Given
from tests.attack.honest import Honest, Wait, longest
from tests.attack.memory_group import memory_group
from tests.attack.requests_made import RequestsMade
from tests.attack.stand import COMPAT, ELSEWHERE, HOME, HONEST, OPERATOR, Stand, stand
from tests.attack.verdict import MOST_WAIT_SECONDS, Minute, Verdict, is_let_in
from tests.perf.machine import machine
from tests.perf.procfs import memory
from tests.perf.settings import ROOT
from tests.soak.checker import Checker
from tests.soak.log_lines import LogLines
from tests.soak.nodes import CARD_MIB
from tests.soak.site import LEASE, say

_ATTACKERS_MIB = 1024
_JUDGED_SECONDS = MOST_WAIT_SECONDS + 1.0  # so long a job may still wait when a minute ends
_WARM_SECONDS = 12.0  # in which the honest tenant's first jobs run, and nobody attacks
_MIB_TO_MB = 1024 * 1024 / 1e6
_UNEXPECTED = re.compile(rb"^.*: unexpected$|^Traceback \(most recent .*$", re.MULTILINE)


class AttackRun:
    """One attack."""

    def __init__(self, scene: Stand, minutes: float, seed: int) -> None:
        site = scene.site
        self._stand, self._minutes, self._seed = scene, minutes, seed
        self._given = {
            HOME: Given(site, HOME, place.LIMIT_GPUS * 1000, plugin=True),
            COMPAT: Given(site, COMPAT, place.LIMIT_GPUS * 1000),
            ELSEWHERE: Given(site, ELSEWHERE, 0),
        }
        self._checker = Checker(site, lambda node, device: f"{node}/{device}", CARD_MIB)
        self._honest = Honest(site, scene.honest, HONEST)
        self._requests = RequestsMade(scene.audit, OPERATOR)
        self._told: dict[str, Any] = {"answers": {}, "messages": {}}
        self._transitions = 0
        self._first_transitions: int | None = None
        self.verdict = Verdict(machine=machine())

    def run(self, only: list[str]) -> Verdict:
        """Watch, attack, and say what came of it."""
        site, given = self._stand.site, self._given
        followed = (
            ("replicas", self._stand.replicas.watch_over),
            ("lease", self._look_at_lease),
            ("requests", self._read_requests),
            ("pods", self._checker.watch.follow),
            *((name, each.watch.follow) for name, each in given.items()),
            *((name, each.follow) for name, each in self._honest.watches.items()),
            ("honest tenant", self._honest.submit),
            ("honest pods' end", self._honest.end_what_ran),
        )
        threads = [site.act(name, step, until=site.stop) for name, step in followed]
        site.rest(_WARM_SECONDS)
        began = time.time()
        with _attackers(self._stand, self._seed, only, self._told):
            for number in range(1, max(1, round(self._minutes)) + 1):
                seconds = 60 * min(1.0, self._minutes - number + 1)
                self.verdict.minutes.append(self._minute(number, seconds))
                say(self.verdict.minutes[-1].line())
            ended = time.time()
        site.enough.set()
        site.stop.set()
        for thread in threads:
            thread.join(timeout=30)
        return self._judge(began, ended)

    def _look_at_lease(self) -> None:
        spec = self._stand.site.admin.get(LEASE).body.get("spec") or {}
        count = int(spec.get("leaseTransitions") or 0)
        if self._first_transitions is None:
            self._first_transitions = count
        self._transitions = max(self._transitions, count - self._first_transitions)
        self._stand.site.rest(1.0)

    def _read_requests(self) -> None:
        self._requests.read()
        self._stand.site.rest(1.0)

    def _minute(self, number: int, seconds: float) -> Minute:
        since, wall = time.monotonic(), time.time()
        operator = api_server = 0.0
        while (left := since + seconds - time.monotonic()) > 0:
            time.sleep(min(0.5, left))
            operator = max(operator, *self._stand.replicas.memory_mib(), 0.0)
            try:
                api_server = max(api_server, memory(self._stand.api_server_pid).rss_mib)
            except (OSError, KeyError):
                say("the API server has ended")
                self.verdict.api_server_ended += 1
                self._stand.revive()
        until = time.monotonic()
        judged = since - _JUDGED_SECONDS, until - _JUDGED_SECONDS
        honest = self._honest
        let_in, refused = self._counts()
        return Minute(
            number=number,
            operator_mb=round(operator * _MIB_TO_MB),
            api_server_mb=round(api_server * _MIB_TO_MB),
            operator_requests_a_second=self._requests.a_second(wall, time.time()),
            pod_wait_seconds=longest(honest.pods, *judged, Wait.seconds),
            job_wait_seconds=longest(honest.jobs, *judged, Wait.ours),
            whole_job_seconds=longest(honest.jobs, *judged, Wait.seconds),
            plain_pod_seconds=longest(honest.plain, *judged, Wait.seconds),
            write_seconds=honest.slowest_write(since, until),
            replicas_ended=len(self._stand.replicas.ended),
            lease_transitions=self._transitions,
            attacks_let_in=let_in,
            attacks_refused=refused,
            log_lines=self._logs().count(b"\n"),
        )

    def _counts(self) -> tuple[int, int]:
        statuses: Counter[str] = Counter()
        for found in self._told["answers"].values():
            statuses.update(found)
        let_in = sum(count for status, count in statuses.items() if is_let_in(status))
        return let_in, statuses.total() - let_in

    def _logs(self) -> bytes:
        folder = self._stand.site.running.folder
        return b"".join(log.read_bytes() for log in sorted(folder.glob("replica-*.log")))

    def _judge(self, began: float, ended: float) -> Verdict:
        found, text = self.verdict, self._logs()
        self._requests.read()
        lines = LogLines()
        lines.read(text.decode(errors="replace"))
        found.requests_a_second = self._requests.a_second(began, ended)
        found.most_for_one = self._requests.most_for_one()
        found.request_kinds = dict(self._requests.kinds.most_common())
        for given in self._given.values():
            found.not_given = {**found.not_given, **given.found}
            found.pods_seen += given.seen
            found.most_milli = max(found.most_milli, given.most_milli)
        found.cards_above_capacity = [f"{a.card}: {a.milli}" for a in self._checker.above]
        found.killed_for_memory = sum(group.killed() for group in self._stand.operator_memory)
        found.unexpected = [
            line.decode(errors="replace")[:300] for line in _UNEXPECTED.findall(text)
        ]
        found.answers, found.messages = self._told["answers"], self._told["messages"]
        found.failures = self._stand.site.failures
        found.log_lines = lines.most(10)
        return found


@contextmanager
def _attackers(scene: Stand, seed: int, only: list[str], told: dict[str, Any]) -> Iterator[None]:
    """A process that attacks for as long as it lasts; ``told``: what it says of it."""
    nodes = [f"gpu-{number:04d}" for number in range(place.NODES)]
    running = scene.site.running
    task = {
        "server": running.server,
        "ca_file": str(running.ca_file),
        "tokens": scene.tokens,
        "scene": asdict(Scene(HOME, COMPAT, ELSEWHERE, nodes, scene.reports[0])),
        "seed": seed,
        "only": only,
    }
    with memory_group("attackers", _ATTACKERS_MIB << 20) as group:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.play"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        group.add(process.pid)
        reader = threading.Thread(target=_listen, args=(process.stdout, told), daemon=True)
        reader.start()
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            yield
            process.stdin.close()
            reader.join(timeout=120)
        finally:
            process.kill()
            process.wait()


def _listen(output: IO[str], told: dict[str, Any]) -> None:
    for line in output:
        told.update(json.loads(line))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--api-server-gib", type=float, default=6.0, help="that it may hold")
    names = [attack.name for attack in ATTACKS]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=[], metavar="ATTACK",
        help=f"default: all of them: {', '.join(names)}",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    parser.add_argument("--keep-logs", type=Path, default=None, help="folder for replicas' logs")
    options = parser.parse_args()
    with stand(options.api_server_gib, options.seed) as scene:
        verdict = AttackRun(scene, options.minutes, options.seed).run(options.only)
        if options.keep_logs is not None:
            options.keep_logs.mkdir(parents=True, exist_ok=True)
            folder = scene.site.running.folder
            for log in (*folder.glob("replica-*.log"), *folder.glob("logs/*.log")):
                (options.keep_logs / log.name).write_bytes(log.read_bytes())
    if options.output is not None:
        options.output.write_text(json.dumps(verdict.to_json(), indent=1) + "\n")
    print(verdict.page())  # noqa: T201
    return 1 if verdict.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
