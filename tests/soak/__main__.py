"""``make soak MINUTES=60``: random jobs, nodes, hostile objects and faults, and a checker.

Two replicas with the default lease on fake nodes. Ends with 1 when a promise was broken: a device
above its capacity, a job lost, a retry charged, a pod with a place deleted without a word, a word
older than two seconds, a line of the log that repeats without a change, an exception that nobody
foresaw, a pod with a GPU that nobody gave it. Writes JSON, and the table that it prints; nothing of
the cluster is left.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.api.caller import Caller
from tests.api.tenant import GROUP
from tests.faultproxy import FaultProxy
from tests.perf.install import cluster, operator_kubeconfig
from tests.perf.machine import machine
from tests.soak.administrators import Administrators
from tests.soak.attacks import Attacks
from tests.soak.checker import Checker
from tests.soak.faults import Faults, with_a_clock
from tests.soak.hostile import HOME, Hostile
from tests.soak.jobs import Jobs
from tests.soak.load import HONEST, TEAMS, Load, Promise
from tests.soak.log_lines import LogLines
from tests.soak.nodes import CARD_MIB, Nodes
from tests.soak.report import Report
from tests.soak.site import AWAY, Replicas, Site, say

from cluster import Running

# All else is as the operator has it by default.
_SETTINGS = {"admin_port": "0", "report_port": "0", "status_seconds": "1.0"}
_SETTINGS |= {"recheck_seconds": "30", "eviction_pause_seconds": "10"}  # as by default
_ACTORS = ("load", "users", "hostile", "attacks", "trouble", "faults", "administrators")
_LOGS = re.compile(rb": unexpected$|Traceback \(most recent call last\)", re.MULTILINE)


class Soak:
    """One run."""

    def __init__(self, running: Running, proxy: FaultProxy, options: argparse.Namespace) -> None:
        seed: int = options.seed
        token = running.token
        self._proxy = proxy
        self.site = site = Site(
            running,
            seed,
            admin=Caller(running.server, running.ca_file, token()),
            editor=Caller(running.server, running.ca_file, token("edit-user")),
        )
        self._options, self._minutes = options, float(options.minutes)
        self.nodes = Nodes(site)
        self.load = Load(site)
        self.checker = Checker(site, self.nodes.card, CARD_MIB)
        self.jobs = Jobs(site, self.load, self.checker)
        self.hostile = Hostile(site, self.nodes)
        self.attacks = Attacks(site, self.nodes)
        self.administrators = Administrators(site, self.load, crds=options.crds)
        self.memory: list[float] = []

    def run(self) -> Report:
        """Everything at once, then the end of it, then the verdict."""
        site = self.site
        self.nodes.create()
        self.load.create_teams()
        self.attacks.prepare()
        for team in TEAMS:
            site.running.kubectl(
                "wait", "--for=create", "serviceaccount/default", f"--namespace={team}",
                "--timeout=60s",
            )  # fmt: skip
        kubeconfig = self._proxy.kubeconfig(
            operator_kubeconfig(site.running), site.running.folder / "soak.kubeconfig"
        )
        replicas = Replicas(site, kubeconfig, _SETTINGS, with_a_clock)
        faults = Faults(site, replicas, self._proxy)
        try:
            always = [
                site.act(name, step, until=site.stop)
                for name, step in (
                    ("replicas", replicas.watch_over),
                    ("checker", self.checker.watch.follow),
                    ("jobs", self.jobs.watch.follow),
                    ("batch jobs", self.jobs.watch_batch.follow),
                    ("words", self.jobs.look),
                    ("agents", self.nodes.beat),
                    *(("given", each.watch.follow) for each in self.attacks.given),
                )
            ]
            self._trouble(faults, replicas)
            say("over; what is under way may end")
            lost = self._drain()
            site.stop.set()
            for thread in always:
                thread.join(timeout=30)
            return self._report(faults, replicas, lost)
        finally:
            site.enough.set()
            site.stop.set()
            replicas.end()

    def _trouble(self, faults: Faults, replicas: Replicas) -> None:
        """For as long as was asked for."""
        end = time.monotonic() + 60 * self._minutes
        site = self.site
        threads = [
            site.act(name, step, until=site.enough)
            for name, step in (
                ("load", self.load.submit),
                ("users", self.load.meddle),
                ("hostile", self.hostile.attack),
                ("attacks", self.attacks.attack),
                ("trouble", self.nodes.trouble),
                ("faults", faults.strike),
                ("administrators", self.administrators.change),
            )
            if name in self._options.actors
        ]
        minute = 0
        while time.monotonic() < end and not site.failures:
            time.sleep(min(10.0, max(0.0, end - time.monotonic())))
            held = replicas.memory_mib()
            elapsed = int((self._minutes * 60 - (end - time.monotonic())) // 60)
            if held and elapsed >= minute:
                self.memory.append(max(held))
                minute = elapsed + 1
                say(
                    f"minute {elapsed}: {len(self.load.preemption_policy)} jobs, "
                    f"{self.checker.placements} placed, {self.checker.held_milli()} milli held, "
                    f"{self.load.unfinished} unfinished, {len(self.checker.above)} above, "
                    f"{sum(self.jobs.late.values())} late words, {max(held):.0f} MiB"
                )
        site.enough.set()
        for thread in threads:
            thread.join(timeout=60)
        self._proxy.rules.clear()

    def _drain(self) -> list[str]:
        """Until every job has ended that is meant to; those that have not."""
        self.site.disturbed.end()
        restore = self.administrators.restore
        clear = (self.hostile.clear, self.attacks.clear)
        for work in (restore, *clear, self.nodes.heal, self._resume_all):
            _surely(work)
        _surely(
            lambda: self.site.running.kubectl("delete", "gpujobs", "--all", f"--namespace={HOME}")
        )
        deadline = time.monotonic() + self._options.drain_seconds
        left = self._left()
        while left and time.monotonic() < deadline:
            time.sleep(2)
            left = self._left()
        for promise, _ in left:
            _surely(partial(self._keep, promise))
        return [f"{p.namespace}/{p.name} ({p.kind}): {s}" for p, s in left]

    def _left(self) -> list[tuple[Promise, str]]:
        found = []
        for key, promise in self.load.preemption_policy.items():
            if promise.deleted or promise.ended:
                continue
            seen = self.jobs.seen.get(key)
            found.append((promise, json.dumps(seen.status)[:3000] if seen else "gone"))
        return found

    def _keep(self, promise: Promise) -> None:
        """A lost job's objects, beside the logs: its cause is looked for in them."""
        kept = {}
        for what in ("gpujobs", "jobs", "pods"):
            group = {"gpujobs": GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1"}[what]
            items = self.site.admin.get(f"{group}/namespaces/{promise.namespace}/{what}")
            kept[what] = [
                each
                for each in items.body["items"]
                if promise.name
                in (
                    each["metadata"]["name"],
                    (each["metadata"].get("labels") or {}).get("gpu-scheduler.io/job"),
                )
            ]
        text = json.dumps(kept, indent=1)
        (self.site.running.folder / f"lost-{promise.namespace}-{promise.name}.json").write_text(
            text
        )

    def _resume_all(self) -> None:
        for team in HONEST:
            path = f"{GROUP}/namespaces/{team}/gpujobs"
            for job in self.site.admin.get(path).body["items"]:
                if job["spec"].get("suspend"):
                    self.load.resume(f"{path}/{job['metadata']['name']}")

    def _charged(self) -> tuple[list[str], list[str]]:
        """Failures that Jobs counted and that nobody had; those of the documented race apart."""
        charged: list[str] = []
        raced: list[str] = []
        for promise in self.load.preemption_policy.values():
            if promise.deleted:
                continue
            failed = sum(self.jobs.failed.get((promise.namespace, promise.name), {}).values())
            if failed > promise.fails:
                line = f"{promise.namespace}/{promise.name} ({promise.kind}): {failed} failed"
                (raced if promise.rejected else charged).append(line)
        return charged, raced

    def _report(self, faults: Faults, replicas: Replicas, lost: list[str]) -> Report:
        site, jobs, checker = self.site, self.jobs, self.checker
        charged, raced = self._charged()
        words = sorted(jobs.first_word_seconds) or [0.0]
        unexpected: list[str] = []
        tracebacks = 0
        lines = LogLines(jobs.changes, site.disturbed.epoch())
        for log in site.running.folder.glob("replica-*.log"):
            text = log.read_bytes()
            lines.read(text.decode(errors="replace"))
            for match in _LOGS.finditer(text):
                if match[0].startswith(b"Traceback"):
                    tracebacks += 1
                    continue
                line = text[text.rfind(b"\n", 0, match.start()) + 1 : match.end()]
                unexpected.append(f"{log.stem}: {line.decode(errors='replace')[:300]}")
        return Report(
            minutes=self._minutes,
            seed=site.seed,
            machine=machine(),
            faults=dict(sorted(site.counts.items())),
            requests_hit=faults.counts(),
            hostile_objects=sum(
                v for k, v in site.counts.items() if k.startswith(("hostile", "attack"))
            ),
            jobs=len(self.load.preemption_policy),
            pods_placed=checker.placements,
            leaders=replicas.ended,
            cards_above_capacity=len(checker.above),
            peak_milli=checker.peak_milli,
            peak_mib=checker.peak_mib,
            jobs_lost=lost,
            retries_charged=charged,
            retries_charged_by_race=raced,
            late_words=dict(jobs.late),
            late_examples=jobs.examples,
            worst_word_seconds=jobs.worst,
            checked_seconds=jobs.checked_seconds,
            disturbed_seconds=site.disturbed.seconds(),
            leaderless_seconds=site.leaderless.seconds(),
            longest_leaderless_seconds=site.leaderless.longest(),
            first_word_median_seconds=statistics.median(words),
            first_word_p99_seconds=words[int(0.99 * (len(words) - 1))],
            memory_mib_by_minute=self.memory,
            unexpected=unexpected,
            tracebacks=tracebacks,
            above=[f"{a.card}: {a.milli} milli, {a.mib} MiB: {a.pods}" for a in checker.above],
            harness_failures=site.failures,
            unannounced=jobs.unannounced(),
            not_given=self.attacks.not_given(),
            log_lines=lines.most(10),
            log_repeats=lines.repeated(),
        )


def _surely(work: Callable[[], object]) -> None:
    """Again until the API server has answered."""
    for _ in range(30):
        try:
            work()
        except AWAY:
            time.sleep(1)
        else:
            return


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    parser.add_argument("--keep-logs", type=Path, default=None, help="folder for replicas' logs")
    parser.add_argument("--drain-seconds", type=float, default=600.0, help="for jobs under way")
    parser.add_argument(
        "--actors", nargs="+", choices=_ACTORS, default=_ACTORS, help="default: all of them"
    )
    parser.add_argument(
        "--crds",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="now and then one of our CRDs is deleted and restored, with all of its objects",
    )
    options = parser.parse_args()
    with (
        cluster(f"soak-{os.getpid()}", nodes=0, qps=200) as running,
        FaultProxy.of(running, seed=options.seed) as proxy,
    ):
        report = Soak(running, proxy, options).run()
        if options.keep_logs is not None:
            options.keep_logs.mkdir(parents=True, exist_ok=True)
            for log in (*running.folder.glob("replica-*.log"), *running.folder.glob("lost-*")):
                (options.keep_logs / log.name).write_bytes(log.read_bytes())
    text = json.dumps(report.to_json(), indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n")
    print(text)  # noqa: T201
    print(report.table())  # noqa: T201
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
