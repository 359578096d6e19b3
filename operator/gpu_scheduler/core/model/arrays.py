"""The kinds of arrays that the planner works with, by what they hold."""

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
