"""Two replicas of the operator, one of which leads: for tests that end leaders."""

from tests.api.caller import Caller
from tests.api.replica import LEASE, STANDBY, Replica
from tests.api.tenant import until

from cluster import Running


class Replicas:
    """Two replicas; one that has ended is started again, as the kubelet does."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._count = 0
        self._all = [self._start(), self._start()]

    def _start(self) -> Replica:
        self._count += 1
        return Replica(self._running, f"replica-{self._count}", STANDBY).start()

    def leader(self, admin: Caller) -> Replica | None:
        self._all = [r if r.alive() else self._start() for r in self._all]
        holder = admin.get(LEASE).body.get("spec", {}).get("holderIdentity", "")
        return next((r for r in self._all if holder.startswith(f"{r.name}_")), None)

    def kill_leader(self, admin: Caller) -> None:
        """The stand-by need not wait for the end of its Lease."""
        victim: Replica = until(lambda: self.leader(admin), "somebody leads")
        victim.kill()
        victim.forget()
        self.leader(admin)  # another one stands by

    def stop_leader(self, admin: Caller) -> None:
        """SIGTERM: it gives its Lease back."""
        leading: Replica = until(lambda: self.leader(admin), "somebody leads")
        leading.stop()
        self.leader(admin)

    def end(self) -> None:
        """Kill both."""
        for replica in self._all:
            if replica.alive():
                replica.kill()
        self._all[0].forget()
