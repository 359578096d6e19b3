"""Names of GPU products: which of them a model means.

A product's name consists of words with '-', '_' or spaces between them, such as
'NVIDIA-A100-SXM4-40GB'. A model means a product if its own words follow one another in that name,
upper or lower case: 'A100' and 'A100-SXM4' do, 'A10' does not. Called wherever models are compared.
"""

import re

from gpu_scheduler.limits.bounded import remembered

_BETWEEN = re.compile(r"[-_\s]+")
_MOST_KNOWN = 4096


@remembered(_MOST_KNOWN)
def words(name: str) -> tuple[str, ...]:
    """The words of a name, lower case."""
    return tuple(word for word in _BETWEEN.split(name.lower()) if word)


@remembered(_MOST_KNOWN)
def means(model: str, product: str) -> bool:
    """Whether a model means a product; one without words means every product."""
    wanted, named = words(model), words(product)
    last = len(named) - len(wanted)
    return any(named[at : at + len(wanted)] == wanted for at in range(last + 1))


def spelt(model: str, product: str) -> str:
    """A model as a product's name spells it."""
    between = r"[-_\s]+".join(re.escape(word) for word in words(model))
    found = re.search(rf"(?<![^-_\s]){between}(?![^-_\s])", product, re.IGNORECASE)
    return found.group() if found else model
