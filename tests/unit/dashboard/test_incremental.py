"""A picture of which most was read for the one before equals one that is made from nothing."""

from dataclasses import fields
from random import Random

import pytest
from tests.unit.dashboard.random_news import RandomNews
from tests.unit.dashboard.stage import Stage

from gpu_scheduler.dashboard.picture import Picture

HISTORIES, NEWS = 200, 12
_COMPARED = [each.name for each in fields(Picture) if each.name != "details"]


@pytest.mark.long
async def test_after_each_of_random_histories() -> None:
    shown = dict.fromkeys(_COMPARED, 0)
    for seed in range(HISTORIES):
        random = Random(seed)
        stage = Stage()
        news = RandomNews(stage, random)
        for number in range(NEWS):
            for _ in range(random.randint(1, 3)):
                news.happens()
            found = await stage.picture()
            anew = await stage.new_maker().look()
            for name in _COMPARED:
                assert getattr(found, name) == getattr(anew, name), (seed, number, name)
                shown[name] += bool(getattr(found, name))
    # Histories that leave a list empty would show nothing of it; there is no advice without agents.
    assert min(each for name, each in shown.items() if name not in ("advice", "silent_agents")) > 10
