"""A plugin of pytest: its processes look for garbage seldom. A tier of many tests asks for it.

Ten thousand tests are there to the end. A walk over them for garbage takes a second, and a
hundred thousand new objects are reason enough for one; to keep some millions costs less.
"""

import gc

gc.set_threshold(50_000, 10, 10)
