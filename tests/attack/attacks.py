"""Every attack there is, in a table: the API tier plays a little of each, `make attack` all of it.

An attack that is not withstood yet says so, and the API tier leaves it out until it is: then
``withstood=False`` goes, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.attack import on_gpus, on_the_operator
from tests.attack.attacker import Attacker


@dataclass(frozen=True, slots=True)
class Attack:
    """One of them.

    Attributes:
        step: one round of it.
        at_once: how many play it at once, each without a pause.
        withstood: whether all that is promised holds while it is played.
    """

    step: Callable[[Attacker], None]
    at_once: int = 1
    withstood: bool = True

    @property
    def name(self) -> str:
        return self.step.__name__.replace("_", "-")

    @property
    def what(self) -> str:
        """In a sentence."""
        return (self.step.__doc__ or "").strip().split("\n")[0]


ATTACKS = (
    Attack(on_gpus.env_from_protobuf),
    Attack(on_gpus.env_from_json),
    Attack(on_gpus.wide),
    Attack(on_gpus.long_maps),
    Attack(on_gpus.ephemeral),
    Attack(on_gpus.picks),
    Attack(on_gpus.picks_elsewhere),
    Attack(on_gpus.components),
    Attack(on_gpus.init_containers),
    Attack(on_gpus.own_keys_and_plugin),
    Attack(on_gpus.gates),
    Attack(on_gpus.forged_allocations),
    Attack(on_the_operator.asked_notes, at_once=2),
    Attack(on_the_operator.other_notes),
    Attack(on_the_operator.long_args, at_once=2),
    Attack(on_the_operator.empty_objects),
    Attack(on_the_operator.changing_templates),
    Attack(on_the_operator.missing_claims),
    Attack(on_the_operator.our_names),
    Attack(on_the_operator.statuses),
    Attack(on_the_operator.tiny_jobs, at_once=2),
    Attack(on_the_operator.many_pods),
    Attack(on_the_operator.deployments),
    Attack(on_the_operator.dear_patterns),
    Attack(on_the_operator.reports, at_once=2),
    Attack(on_the_operator.finalizers),
    Attack(on_the_operator.huge_words),
    Attack(on_the_operator.fights),
    Attack(on_the_operator.forged_owners),
    Attack(on_the_operator.borders),
)
