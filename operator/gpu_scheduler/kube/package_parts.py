"""Parts of the kubernetes package without the whole of it.

Importing ``kubernetes.client.rest`` runs the package's own ``__init__`` first, which imports all
that it has: websockets, OAuth and the reader of kubeconfigs, a third of a second of CPU.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec

_PACKAGE = "kubernetes"


@contextmanager
def parts_alone() -> Iterator[None]:
    """Inside, ``from kubernetes.PART import NAME`` imports that part alone, and what it needs.

    Whoever imports the package itself, before or afterwards, gets all of it as usual.
    """
    spec = None if _PACKAGE in sys.modules else find_spec(_PACKAGE)
    if spec is None:  # all of it is there, or nothing is: the import will say so
        yield
        return
    sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules[_PACKAGE]
