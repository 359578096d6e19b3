from tests.perf.signals.size import FULL, SMALL


def test_a_part_fills_its_gpus_too() -> None:
    for size in (FULL, SMALL, FULL.part(0.25), FULL.part(0.01)):
        assert size.containers * size.milli == 1000 * size.gpus
        assert size.jobs > size.containers or size.nodes == 1
    quarter = FULL.part(0.25)
    assert (quarter.gpus, quarter.containers, quarter.jobs, quarter.namespaces) == (
        248,
        992,
        2500,
        50,
    )
