"""A little of every attack of tests/attack, as one of those who work in the cluster.

The tenant is the hostile one, with two namespaces more: of its project, and of none.
"""

from tests.attack.attacker import Attacker, Scene
from tests.attack.attacks import ATTACKS
from tests.attack.given import Given
from tests.soak.hostile import HOME
from tests.soak.load import COMPAT, HOSTILE_MILLI
from tests.soak.nodes import Nodes
from tests.soak.site import Site, let_edit

ELSEWHERE = "hostile-elsewhere"
_MOST = 4  # objects of one attack that stay until its next round
_SECONDS_BETWEEN = 3.0


class Attacks:
    """One round of one attack after the other."""

    def __init__(self, site: Site, nodes: Nodes) -> None:
        self._site, self._dice = site, site.dice("attacks")
        scene = Scene(HOME, COMPAT, ELSEWHERE, nodes.names, few=True)
        self._attackers = {
            attack.name: (attack, Attacker(attack.name, site.editor, scene, site.dice(attack.name)))
            for attack in ATTACKS
        }
        self.given = (
            Given(site, HOME, HOSTILE_MILLI, plugin=True),
            Given(site, COMPAT, HOSTILE_MILLI),
            Given(site, ELSEWHERE, 0),
        )
        """What its pods get that nobody gave them."""

    def prepare(self) -> None:
        """Its other namespaces, and what it may do in them."""
        admin = self._site.admin
        for name, labels in ((COMPAT, {"gpu-scheduler.io/compat": "hami"}), (ELSEWHERE, {})):
            body = {"metadata": {"name": name, "labels": labels}}
            self._site.must(admin.create("/api/v1/namespaces", body), name)
        everywhere = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/local-edit-user"
        self._site.must(admin.send("DELETE", everywhere), "the editor edits nowhere else")
        for namespace in (HOME, COMPAT, ELSEWHERE):
            user = {"kind": "User", "name": "edit-user", "apiGroup": "rbac.authorization.k8s.io"}
            let_edit(admin, namespace, user)

    def attack(self) -> None:
        """One round."""
        attack, attacker = self._attackers[self._dice.choice(sorted(self._attackers))]
        self._site.count(f"attack {attack.name}")
        attack.step(attacker)
        attacker.keep(_MOST)
        self._site.rest(self._dice.expovariate(1 / _SECONDS_BETWEEN))

    def clear(self) -> None:
        """Remove what is left."""
        for _, attacker in self._attackers.values():
            attacker.keep(0)

    def not_given(self) -> list[str]:
        """Pods that got a GPU past us."""
        return [f"{pod}: {what}" for given in self.given for pod, what in given.found.items()]
