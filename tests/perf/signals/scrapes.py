"""Scrapes of ``/metrics`` as Prometheus makes them: how long one takes, how old what it says is.

The answers come in a thread, so that the time is that of the operator and not of the harness.
"""

import asyncio
import http.client
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.perf.sharing.figures import percentile
from tests.perf.signals.answers import LEAST_MIB
from tests.perf.signals.figures import samples
from tests.perf.signals.load import Work
from tests.perf.signals.stand import TOKEN

_SECONDS = 30.0
_MIB = 1 << 20
_OF_WORK = "gpusched_gpujob_"
_MEMORY = f"{_OF_WORK}gpu_memory_used_bytes"


class ScrapeError(Exception):
    """It was not answered, or not with 200."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One of them; times are monotonic."""

    began: float
    ended: float
    text: str

    @property
    def seconds(self) -> float:
        """Until all of it was there."""
        return self.ended - self.began


async def scrape(port: int) -> Scrape:
    """One with the token, on a connection of its own.

    Raises:
        ScrapeError: the operator did not answer.
    """
    return await asyncio.to_thread(_scrape, port)


def _scrape(port: int) -> Scrape:
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ScrapeError(f"/metrics after {time.monotonic() - began:.1f} s: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise ScrapeError(f"/metrics is answered {answer.status}")
    return Scrape(began, time.monotonic(), body.decode())


@dataclass(frozen=True, slots=True)
class Age:
    """How old what a scrape says of work is.

    Attributes:
        most: not older than this: work that was bound so long before is there.
        least: older than this: work that was bound so long before is missing; 0: none is.
        said: since an agent looked, of each work of which it is known.
        works: how many are there.
    """

    most: float
    least: float
    said: Sequence[float]
    works: int


def age_of(scrape: Scrape, bound: Mapping[Work, float], began: float) -> Age | None:
    """Of a scrape; None: it says nothing of work.

    Args:
        scrape: what was answered.
        bound: all work that ran when it was asked for, and since when.
        began: of the agents' clock.
    """
    shown = {_work(labels) for labels, _ in samples(scrape.text, f"{_OF_WORK}info")}
    if not shown:
        return None
    newest = max((at for work, at in bound.items() if work in shown), default=scrape.began)
    missing = min((at for work, at in bound.items() if work not in shown), default=scrape.ended)
    looked = [began + size / _MIB - LEAST_MIB for _, size in samples(scrape.text, _MEMORY)]
    return Age(
        most=scrape.ended - newest,
        least=max(scrape.ended - missing, 0.0),
        said=[scrape.ended - at for at in looked],
        works=len(shown),
    )


def _work(labels: Mapping[str, str]) -> Work:
    return labels["namespace"], labels["gpujob"]


def summary(scrapes: Sequence[Scrape], ages: Sequence[Age], failed: int) -> dict[str, Any]:
    """Of all scrapes of a phase, of which so many were not answered.

    Raises:
        ScrapeError: none was.
    """
    if not scrapes:
        raise ScrapeError(f"none of {failed} was answered")
    took = [each.seconds for each in scrapes]
    found: dict[str, Any] = {
        "scrapes": len(took),
        "failed": failed,
        "bytes": len(scrapes[-1].text.encode()),
        "p50Ms": round(1000 * percentile(took, 0.5), 1),
        "maxMs": round(1000 * max(took), 1),
    }
    if ages:
        said = [age for each in ages for age in each.said]
        found |= {
            "works": ages[-1].works,
            "worksWithUse": len(ages[-1].said),
            "ageAtLeastP50": round(percentile([each.least for each in ages], 0.5), 2),
            "ageAtLeastMax": round(max(each.least for each in ages), 2),
            "ageAtMostMax": round(max(each.most for each in ages), 2),
            "sinceLookedP50": round(percentile(said, 0.5), 1),
            "sinceLookedMax": round(max(said, default=0.0), 1),
        }
    return found
