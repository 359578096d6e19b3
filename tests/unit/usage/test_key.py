"""Who may ask an agent."""

from gpu_scheduler.usage.key import UsageKeys, may_ask


def test_each_agent_has_a_key_of_its_own() -> None:
    keys = UsageKeys()
    mine, other = keys.digest("agent-1"), keys.digest("agent-2")
    assert may_ask(keys.header("agent-1"), mine)
    assert not may_ask(keys.header("agent-2"), mine)
    assert mine != other


def test_what_stands_in_the_orders_is_no_key() -> None:
    keys = UsageKeys()
    told = keys.digest("agent-1")
    assert not may_ask(f"Bearer {told}", told)
    assert told not in keys.header("agent-1")


def test_nobody_may_ask_who_was_told_nothing() -> None:
    for header in ("", "Bearer ", "Bearer x", UsageKeys().header("agent-1")):
        assert not may_ask(header, "")


def test_the_next_leader_has_other_keys() -> None:
    assert not may_ask(UsageKeys().header("agent-1"), UsageKeys().digest("agent-1"))
