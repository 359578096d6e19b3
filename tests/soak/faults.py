"""What breaks while the work goes on: replicas, the API server, and the network between them."""

from pathlib import Path

from tests.api.replica import Replica
from tests.faultproxy import BINDING, POD, Fault, FaultProxy, Rule
from tests.soak.site import Replicas, Site, say

_LONGEST_SECONDS = 20.0
_STEPPED = Path(__file__).with_name("stepped_operator.py")


def with_a_clock(replica: Replica) -> Replica:
    """Start a replica whose wall clock can be set."""
    replica.program = _STEPPED
    return replica.start()


def _clock_of(replica: Replica) -> Path:
    """The file that says by how many seconds a replica's clock is ahead."""
    assert replica.kubeconfig is not None
    return replica.kubeconfig.with_name(f"{replica.name}.clock")


class Faults:
    """One fault after the other, and some all the time."""

    def __init__(self, site: Site, replicas: Replicas, proxy: FaultProxy) -> None:
        self._site, self._replicas, self._dice = site, replicas, site.dice("faults")
        self._proxy = proxy
        hold = (0.5, _LONGEST_SECONDS)
        # Some of all placing writes are late or unanswered, from the beginning to the end.
        self.always = [
            Rule(Fault.DELAY_REQUEST, "POST", BINDING, probability=0.02, seconds=hold),
            Rule(Fault.LOSE_ANSWER, "POST", BINDING, probability=0.02),
            Rule(Fault.DELAY_ANSWER, "POST", BINDING, probability=0.01, seconds=hold),
            Rule(Fault.DELAY_REQUEST, "PATCH", POD, probability=0.02, seconds=hold),
            Rule(Fault.LOSE_ANSWER, "PATCH", POD, probability=0.02),
            Rule(Fault.LOSE_REQUEST, "POST|PATCH", "/pods/", probability=0.01),
            Rule(Fault.REFUSE, "POST|PATCH", "/pods/", probability=0.01, status=429, retry_after=1),
        ]
        self._past: list[Rule] = []
        proxy.rules[:] = self.always

    def strike(self) -> None:
        """The next one."""
        kinds = (
            [self._kill_leader] * 2
            + [self._kill_standby, self._end_leader]
            + [self._stop_leader, self._stop_leader]
            + [self._api_server_restarts, self._api_server_freezes]
            + [self._controllers_stop] * 3
            + [self._clock_is_set] * 2
            + [self._late_placements] * 4
            + [self._errors, self._expired, self._cut_watches, self._refused, self._slow]
        )
        kind = self._dice.choice(kinds)
        name = kind.__name__.strip("_")
        self._site.count(f"fault {name}")
        say(name)
        kind()
        self._site.rest(self._dice.uniform(5, 40))

    def counts(self) -> dict[str, int]:
        """Requests that a fault happened to, by fault."""
        found: dict[str, int] = {}
        for rule in (*self.always, *self._past):
            found[rule.fault.value] = found.get(rule.fault.value, 0) + rule.applied
        return found

    def _kill_leader(self) -> None:
        leader = self._replicas.leader()
        if leader is not None:
            leader.kill()

    def _kill_standby(self) -> None:
        standby = self._replicas.standby()
        if standby is not None:
            standby.kill()

    def _end_leader(self) -> None:
        leader = self._replicas.leader()
        if leader is not None and leader.process is not None:
            self._replicas.stopped.add(leader.name)  # it leads no more
            leader.process.terminate()

    def _stop_leader(self) -> None:
        """For so long that it may or may not still lead when it goes on."""
        leader = self._replicas.leader()
        if leader is None:
            return
        self._replicas.stopped.add(leader.name)
        leader.pause()
        try:
            self._site.rest(self._dice.uniform(2, _LONGEST_SECONDS))
        finally:
            leader.resume()
            self._replicas.stopped.discard(leader.name)

    def _api_server_restarts(self) -> None:
        self._site.disturbed.begin()
        try:
            self._site.running.stop_process("kube-apiserver", kill=True)
            self._site.rest(self._dice.uniform(0, 12))
            self._site.running.start_process("kube-apiserver")
            self._site.running.wait_ready()
            self._site.rest(5)  # until everybody has found it again
        finally:
            self._site.disturbed.end()

    def _api_server_freezes(self) -> None:
        self._site.disturbed.begin()
        self._site.running.pause_process("kube-apiserver")
        try:
            self._site.rest(self._dice.uniform(1, 12))
        finally:
            self._site.running.resume_process("kube-apiserver")
            self._site.rest(5)
            self._site.disturbed.end()

    def _controllers_stop(self) -> None:
        """No pod is made, deleted or counted for a while; then all of it at once."""
        self._site.running.pause_process("kube-controller-manager")
        try:
            leader = self._replicas.leader()
            if leader is not None and self._dice.random() < 0.3:
                self._site.rest(self._dice.uniform(0, 5))
                leader.kill()  # the next one finds what nobody has acted on yet
            self._site.rest(self._dice.uniform(2, _LONGEST_SECONDS))
        finally:
            self._site.running.resume_process("kube-controller-manager")

    def _clock_is_set(self) -> None:
        """The wall clock of a replica's machine, either way; often it is soon right again."""
        replica = self._dice.choice(self._replicas.all)
        ahead = self._dice.choice((61, 3600, 86_400)) * self._dice.choice((1, -1))
        clock = _clock_of(replica)
        clock.write_text(str(ahead))
        if self._dice.random() < 0.5:
            self._site.rest(self._dice.uniform(1, _LONGEST_SECONDS))
            clock.write_text("0")

    def _late_placements(self) -> None:
        """For a while most placements are held back, answered late, or not answered."""
        hold = (1.0, _LONGEST_SECONDS)
        fault = self._dice.choice((Fault.DELAY_REQUEST, Fault.DELAY_ANSWER, Fault.LOSE_ANSWER))
        self._for_a_while(
            Rule(fault, "POST", BINDING, probability=0.6, seconds=hold),
            Rule(fault, "PATCH", POD, probability=0.6, seconds=hold),
            disturbs=False,
        )

    def _errors(self) -> None:
        status = self._dice.choice((429, 500, 503))
        retry = self._dice.choice((None, 1, 3))
        self._for_a_while(Rule(Fault.REFUSE, probability=0.3, status=status, retry_after=retry))

    def _expired(self) -> None:
        """Watches are told that their version is too old."""
        self._for_a_while(Rule(Fault.REFUSE, "GET", query="watch=", probability=0.5, status=410))

    def _refused(self) -> None:
        """A kind cannot be watched: its CRD is gone, or the right to it."""
        kind = self._dice.choice(("gpujobs", "gpuprojects", "gpunodes", "gpuclasses", "pods"))
        where, status = f"/{kind}$", self._dice.choice((403, 404))
        self._for_a_while(
            Rule(Fault.REFUSE, "GET", where, "watch=|limit=", probability=0.7, status=status),
            Rule(Fault.CUT, "GET", where, "watch=", seconds=(0.1, 1)),
        )

    def _cut_watches(self) -> None:
        self._for_a_while(Rule(Fault.CUT, "GET", query="watch=", seconds=(0.1, 3)))

    def _slow(self) -> None:
        once = r"^(?!.*watch=)"  # the answer to a watch would be held back until its end
        rule = Rule(Fault.DELAY_ANSWER, query=once, probability=0.3, seconds=(0.1, 3))
        self._for_a_while(rule)

    def _for_a_while(self, *rules: Rule, disturbs: bool = True) -> None:
        if disturbs:
            self._site.disturbed.begin()
        self._past.extend(rules)
        self._proxy.rules[:] = [*rules, *self.always]
        try:
            self._site.rest(self._dice.uniform(5, 20))
        finally:
            self._proxy.rules[:] = self.always
            if disturbs:
                self._site.rest(5)
                self._site.disturbed.end()
