"""The policy that warns knows the same keys as the function (api/share_hints.py)."""

from tests.chart.cel_syntax import Literal, Made
from tests.chart.policies import policies
from tests.chart.test_policy_bounds import literals

from gpu_scheduler.api.names import GROUP
from gpu_scheduler.api.share_hints import ALIKE, ASKS, MEANT, WRITTEN


def test_other_spellings_mean_the_same() -> None:
    node = policies()["share-hints"].variables["meant"]
    assert isinstance(node, Made) and node.kind == "map"
    words = [part.value for part in node.parts if isinstance(part, Literal)]
    found = dict(zip(words[::2], words[1::2], strict=True))
    assert {key: f"{GROUP}/{word}" for key, word in found.items()} == dict(MEANT)


def test_keys_and_patterns_are_the_same() -> None:
    variables = policies()["share-hints"].variables
    texts = literals(variables["oddLabels"]) | literals(variables["oddAnnotations"])
    assert set(ASKS) <= texts
    assert f"^{ALIKE.pattern.replace('(?:', '(')}" in texts
    written = WRITTEN.pattern.replace("(?:", "(").replace("\\.", "[.]").replace("\\-", "-")
    assert f"^{written}$" in texts
