from dataclasses import replace

from tests.perf.contenders import STOCK, Contender
from tests.perf.queues import turns
from tests.perf.settings import QUICK, ROOT, Settings

OLD, NEW = Contender("old", ROOT), Contender("new", ROOT)


def test_the_order_turns_from_round_to_round_and_stock_plays_what_it_can() -> None:
    sizes = replace(QUICK, queue_rounds=2)
    settings = Settings(sizes=sizes, scenes=("waiting", "fits"))
    played = [
        (number, scene.name, contender.name)
        for number, scene, contender in turns(settings, (OLD, NEW, STOCK))
    ]
    assert played == [
        (0, "waiting", "old"),
        (0, "waiting", "new"),
        (0, "fits", "old"),
        (0, "fits", "new"),
        (0, "fits", "stock"),
        (1, "waiting", "new"),
        (1, "waiting", "old"),
        (1, "fits", "new"),
        (1, "fits", "stock"),
        (1, "fits", "old"),
    ]
