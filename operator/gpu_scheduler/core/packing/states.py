"""States of nodes of one kind, many together; equal ones are found. Called by ``table``."""

from typing import NamedTuple

import numpy as np

from gpu_scheduler.core.model.arrays import Ints

_MIX = 0x5851F42D4C957F2D  # odd; its powers mix the numbers of a state into one of 64 bits


class States(NamedTuple):
    """States of nodes of one kind.

    Attributes:
        free: [states, devices] milli, rising where devices are alike.
        cpu: [states] milli-CPU; below 0 (a pod bound by hand) nothing fits.
        scarce: [states] scarcity in milli-GPU.
    """

    free: Ints
    cpu: Ints
    scarce: Ints

    def distinct(self) -> tuple[Ints, Ints]:
        """The first of each state that occurs, and for each state where its like is among them."""
        columns = np.column_stack([self.free, self.cpu, self.scarce])
        mixed = columns @ np.cumprod(np.full(columns.shape[1], _MIX))
        _, first, like = np.unique(mixed, return_index=True, return_inverse=True)
        if (columns[first[like]] != columns).any():  # two that differ were mixed alike
            return np.arange(len(columns)), np.arange(len(columns))
        order = first.argsort()
        return first[order], order.argsort()[like]

    def take(self, numbers: Ints) -> "States":
        """Some of them."""
        return States(self.free[numbers], self.cpu[numbers], self.scarce[numbers])
