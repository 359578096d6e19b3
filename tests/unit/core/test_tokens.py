"""A token fits the pod that it was drawn for."""

import pytest

from gpu_scheduler.core.tokens import address, fits, token_of

BASE = "http://reports.example:8081/reports"


def test_an_address_names_sweep_and_trial_and_ends_with_the_token():
    made = address(BASE, "uid-1", 3, draw=lambda count: bytes(range(count)))
    assert made == f"{BASE}/uid-1/3/000102030405060708090a0b0c0d0e0f"
    assert token_of(made) == "000102030405060708090a0b0c0d0e0f"
    assert address(BASE + "/", "uid-1", 3, draw=lambda count: bytes(range(count))) == made


def test_the_same_trial_gets_another_token_each_time():
    tokens = {token_of(address(BASE, "uid-1", 3)) for _ in range(100)}
    assert len(tokens) == 100


def test_only_the_same_token_fits():
    one, other = (token_of(address(BASE, "uid-1", 3)) for _ in range(2))
    assert fits(one, one)
    assert not fits(one, other)


@pytest.mark.parametrize("given", ["", "x", "é", "0" * 32, "\ud800"])
def test_what_is_no_token_does_not_fit(given):
    assert not fits(token_of(address(BASE, "uid-1", 3)), given)


@pytest.mark.parametrize("given", ["", "0" * 32])
def test_a_pod_that_was_given_no_address_takes_no_token(given):
    assert address("", "uid-1", 3) == ""
    assert not fits(token_of(""), given)


@pytest.mark.parametrize("forged", ["x", f"{BASE}/uid-1/3/", f"{BASE}/uid-1/3/short"])
def test_an_address_that_is_none_of_ours_has_no_token(forged):
    assert token_of(forged) == ""
