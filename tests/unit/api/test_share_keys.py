"""Keys of other schedulers are in one table; the policies and the docs have all of them."""

from pathlib import Path

import pytest

from gpu_scheduler.api.share_keys import GANGS, OWN, PEERS

ROOT = Path(__file__).parents[3]
FORMS = (OWN, *PEERS.values())
KEYS = {
    *(key for form in FORMS for key in form.limits),
    *(key for form in FORMS if form.pod for key in (form.pod.container, form.pod.devices)),
    *(key for form in FORMS if form.pod for key in form.pod.amounts),
    *(name for form in FORMS for name in form.schedulers),
    *(key for gang in GANGS for key in gang),
    *(part for form in FORMS for key in form.of_container for part in key.split("{}")),
}


@pytest.mark.parametrize(
    "place", ["docs/moving.md", "charts/gpu-scheduler/templates/_cel_shares.tpl"]
)
def test_every_key_that_is_read_stands_there(place: str) -> None:
    text = (ROOT / place).read_text(encoding="utf-8")
    assert {key for key in KEYS if key not in text} == set()
