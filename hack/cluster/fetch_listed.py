"""Files that are not pinned: what their publisher lists beside them, and what is remembered of it.

The first time such a file counts by the digest in its publisher's list, read over TLS; from then on
by that digest, as if this user had pinned it: one that has changed since is refused, whatever the
list says by then.
"""

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult

import msgspec

from cache_folder import cache_folder
from cluster.errors import ClusterError
from cluster.fetch_offers import DigestFrom, Offer, without_secrets
from cluster.fetch_pins import Digest
from cluster.fetch_url import Limits, NotTaken, read
from cluster.files import write_whole

SUMS_BYTES = 1 << 20
NAME = "published.json"


class ListedDigests:
    """Digests of files that came by their publisher's list, by URL."""

    def __init__(self, path: Path | None = None) -> None:
        """Reads it; outside the folder of programs, which may be deleted to have them anew.

        Raises:
            ClusterError: the file cannot be read as one of these.
        """
        self.path = path or cache_folder() / NAME
        self.known: dict[str, Digest] = {}
        try:
            self.known = msgspec.json.decode(self.path.read_bytes(), type=dict[str, Digest])
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            raise ClusterError(
                f"{self.path} does not say which files were fetched before ({error}); "
                "delete it to trust their publishers once more"
            ) from None

    def add(self, url: SplitResult, digest: Digest) -> None:
        """Remembers a file.

        Raises:
            OSError: it cannot be written.
        """
        self.known[without_secrets(url)] = digest
        content = msgspec.json.encode(self.known, order="deterministic")
        write_whole(self.path, msgspec.json.format(content, indent=2) + b"\n")


async def with_listed(offer: Offer, limits: Limits) -> Offer:
    """The same offer, with the digest that its publisher lists.

    Raises:
        NotTaken: the list is not had over TLS, or does not name the file.
        Away: its server cannot be reached.
    """
    assert offer.list and not isinstance(offer.place, Path), "published, and not pinned"
    if offer.list.scheme != "https":
        raise NotTaken("has its list of digests at a URL that is not https")
    text = (await read(offer.list, SUMS_BYTES, limits)).decode("utf-8", "replace")
    sha256 = listed_digest(text, offer.place.path.rpartition("/")[2])
    return replace(offer, accepted=(Digest(sha256),), known=DigestFrom.LISTED)


def listed_digest(text: str, name: str) -> str:
    """The digest of the file `name` in a file of digests, which may be one digest alone.

    Raises:
        NotTaken: there is none.
    """
    for line in text.splitlines():
        words = line.split()
        right = len(words) == 1 or (len(words) == 2 and words[1].lstrip("*") == name)
        if right and re.fullmatch(r"[0-9a-f]{64}", words[0]):
            return words[0]
    raise NotTaken(f"has no digest of {name} in its file of digests")
