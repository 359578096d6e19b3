"""Fair shares: how much of the cluster each project should hold, by water-filling.

What each project is guaranteed and asks for comes first; the surplus goes to those that ask for
more, by weight, capped by what they ask for, until nothing is left. Integers of milli-GPU with the
largest remainder: shares sum to what there is or to what is asked for, whichever is less, and
nobody's share is cut to whole GPUs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.quota import ceiling_milli
from gpu_scheduler.core.model.request import Project, ProjectName

EXACT = 1 << 64  # above the product of any two weights or quotas


@dataclass(frozen=True, slots=True)
class FairShareDemand:
    """One party of a water-filling: never more than ``most``, else in proportion to ``weight``."""

    weight: int
    most: int


def fair_shares(
    capacity_milli: int,
    projects: Mapping[ProjectName, Project],
    demand_milli: Mapping[ProjectName, int],
) -> dict[ProjectName, int]:
    """The milli-GPU that each project should hold.

    Args:
        capacity_milli: what all projects together can hold.
        projects: quotas, limits and weights.
        demand_milli: what each holds and waits for; absent = 0. What is above a project's ceiling
            (its limit; without a weight its quota) counts for nothing.

    Where the guarantees alone are more than there is, they are scaled down in proportion.
    """
    asked = {
        name: min(demand_milli.get(name, 0), ceiling_milli(project))
        for name, project in projects.items()
    }
    quotas = {name: project.quota_milli for name, project in projects.items()}
    return _level_by_level(capacity_milli, asked, (quotas,), projects)


def model_shares(
    model: str,
    capacity_milli: int,
    projects: Mapping[ProjectName, Project],
    demand_milli: Mapping[ProjectName, int],
) -> dict[ProjectName, int]:
    """The milli-GPU that each project should hold of one model.

    Guarantees that name the model come first, then what quotas of any GPU allow those that do not
    name it, then weights. ``demand_milli``: what each holds, and waits for on this model alone.
    """
    asked = {}
    named, others = {}, {}
    for name, project in projects.items():
        guaranteed = project.quota_by_model.get(model)
        most = ceiling_milli(project)
        if guaranteed is not None and project.weight == 0:
            most = min(most, guaranteed)
        asked[name] = min(demand_milli.get(name, 0), most)
        named[name] = guaranteed or 0
        others[name] = project.quota_milli if guaranteed is None else 0
    return _level_by_level(capacity_milli, asked, (named, others), projects)


def _level_by_level(
    capacity_milli: int,
    asked: Mapping[ProjectName, int],
    guarantees: Iterable[Mapping[ProjectName, int]],
    projects: Mapping[ProjectName, Project],
) -> dict[ProjectName, int]:
    """Guarantees one after the other, each in proportion where they are too much, then weights."""
    left = max(0, capacity_milli)
    shares = dict.fromkeys(asked, 0)
    for quotas in guarantees:
        sure = {name: min(asked[name] - share, quotas[name]) for name, share in shares.items()}
        if sum(sure.values()) > left:
            sure = water_fill(
                left, {name: FairShareDemand(quotas[name], most) for name, most in sure.items()}
            )
        left -= sum(sure.values())
        shares = {name: share + sure[name] for name, share in shares.items()}
    rest = {
        name: FairShareDemand(projects[name].weight, asked[name] - shares[name]) for name in shares
    }
    extra = water_fill(left, rest)
    return {name: share + extra[name] for name, share in shares.items()}


def water_fill(amount: int, asks: Mapping[ProjectName, FairShareDemand]) -> dict[ProjectName, int]:
    """Divide an amount by weight; who is full leaves its part to the others.

    The parts sum to the amount, or to everything that those with a weight ask for.
    """
    parts = dict.fromkeys(asks, 0)
    # By most / weight; two such fractions differ by more than 1 / EXACT unless they are equal.
    thirsty = [
        (ask.most * EXACT // ask.weight, name)
        for name, ask in asks.items()
        if ask.weight > 0 and ask.most > 0
    ]
    thirsty.sort()
    weight = sum(asks[name].weight for _, name in thirsty)
    for i, (_, name) in enumerate(thirsty):
        if asks[name].most * weight > amount * asks[name].weight:  # nobody from here on is full
            parts.update(_by_remainder(amount, weight, [(n, asks[n]) for _, n in thirsty[i:]]))
            break
        parts[name] = asks[name].most
        amount -= asks[name].most
        weight -= asks[name].weight
    return parts


def _by_remainder(
    amount: int, weight: int, asks: list[tuple[ProjectName, FairShareDemand]]
) -> dict[ProjectName, int]:
    """Whole milli by weight; those cut off most get one more."""
    parts = {name: amount * ask.weight // weight for name, ask in asks}
    cut = sorted(asks, key=lambda entry: (-(amount * entry[1].weight % weight), entry[0]))
    for name, _ in cut[: amount - sum(parts.values())]:
        parts[name] += 1
    return parts
