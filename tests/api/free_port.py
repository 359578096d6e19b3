"""A port for an operator that has to be told one, on a machine where other tests start theirs.

It lies between those of clusters and those that Linux gives to clients and to whoever asks for any,
so that nobody takes it between the choice and its use but a test that draws the same.
"""

import random

from cluster import ports

FIRST_OF_CLIENTS = 32_768  # ip_local_port_range, as Linux comes


def free_port() -> int:
    """Drawn by chance, and not by the seed that a test may have set."""
    chance = random.SystemRandom()
    between = range(ports.LAST, FIRST_OF_CLIENTS)
    return next(port for port in chance.sample(between, len(between)) if ports.is_free(port))
