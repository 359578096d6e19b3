"""A token fits one trial of one sweep."""

import pytest

from gpu_scheduler.core.sweeps.tokens import fits, token

SECRET = bytes(range(32))


def test_a_token_is_that_of_every_earlier_version():
    assert token(SECRET, "uid-1", 3) == "4aabbb4ad2e57c42bb87f1ec00db3459"


@pytest.mark.parametrize(
    ("uid", "trial", "secret"),
    [("uid-2", 3, SECRET), ("uid-1", 4, SECRET), ("uid-1", 3, bytes(32)), ("uid-1/3", 3, SECRET)],
)
def test_a_token_of_another_trial_sweep_or_installation_does_not_fit(uid, trial, secret):
    given = token(SECRET, "uid-1", 3)
    assert fits(SECRET, "uid-1", 3, given)
    assert not fits(secret, uid, trial, given)


@pytest.mark.parametrize("given", ["", "x", "é", "0" * 32, "\ud800"])
def test_what_is_no_token_does_not_fit(given):
    assert not fits(SECRET, "uid-1", 3, given)


@pytest.mark.parametrize("secret", [b"", b"short", bytes(65)])
def test_a_secret_that_could_be_guessed_is_refused(secret):
    with pytest.raises(ValueError, match="16 to 64"):
        token(secret, "uid-1", 3)
