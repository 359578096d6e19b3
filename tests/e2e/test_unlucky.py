"""A job of every kind that is wrong or has bad luck reads right in one look."""

from tests.api.caller import Caller
from tests.unlucky.families import FAMILIES, generate
from tests.unlucky.looks import look_at, places

from cluster import Running


def test_each_reads_right_in_one_look(operated: Running, admin: Caller) -> None:
    with places(admin) as tenants:
        looks = list(look_at(operated, tenants, generate(len(FAMILIES), seed=2)))
    wrong = [look for look in looks if look.problem]
    assert not wrong, "\n".join(f"{each.problem}: {each.row} {each.message}" for each in wrong)
    assert len(looks) == len(FAMILIES)
