"""What somebody saw counts for a while, for the spec that it was about."""

from tests.unit.state.builders import make_gpujob

from gpu_scheduler.state.jobs.looked import PrerequisiteStore

KEY, ABOUT = make_gpujob().key, ("uid", 1)


def looked(missing: str = "") -> PrerequisiteStore:
    made = PrerequisiteStore()
    made.on = True
    assert made.unseen(KEY, ABOUT) and not made.lacks(KEY, ABOUT)
    assert made.note(KEY, ABOUT, missing, 10.0) == bool(missing)
    return made


def test_where_nobody_looks_nothing_is_unseen() -> None:
    assert not PrerequisiteStore().unseen(KEY, ABOUT)


def test_what_is_missing_is_told_and_counts_until_the_next_look() -> None:
    made = looked("there is no claim")
    assert made.lacks(KEY, ABOUT) and not made.unseen(KEY, ABOUT)
    assert made.said(KEY) == "; nobody gives way to it: there is no claim"
    assert made.next_expiry() == 10.0 and made.expire(9.0) == []
    assert made.expire(10.0) == [KEY]
    assert made.unseen(KEY, ABOUT) and not made.lacks(KEY, ABOUT)
    assert made.said(KEY), "somebody looks at once, if it matters"
    assert not made.note(KEY, ABOUT, "there is no claim", 20.0), "that is no news"
    assert made.lacks(KEY, ABOUT)


def test_who_is_not_looked_at_any_more_is_told_nothing_old() -> None:
    made = looked("there is no claim")
    made.expire(10.0)
    assert made.next_expiry() == 40.0 and made.expire(40.0) == [KEY]
    assert made.said(KEY) == "" and made.next_expiry() is None and made.unseen(KEY, ABOUT)


def test_another_spec_is_unseen_and_lacks_nothing_that_is_known() -> None:
    made = looked("there is no claim")
    assert made.unseen(KEY, ("uid", 2)) and not made.lacks(KEY, ("uid", 2))


def test_news_of_a_namespace_make_all_of_it_unseen() -> None:
    made = looked()
    assert made.forget_namespace("elsewhere") == [] and not made.unseen(KEY, ABOUT)
    assert made.forget_namespace("team-a") == [KEY] and made.unseen(KEY, ABOUT)
    assert made.forget_namespace("team-a") == []


def test_what_was_seen_of_jobs_that_are_gone_is_forgotten() -> None:
    made = looked("x" * 10_000)
    assert len(made.missing(KEY)) <= 300
    made.forget(lambda key: True)
    assert made.missing(KEY) == "" and made.next_expiry() is None


def test_who_reads_a_status_knows_what_was_missing_until_somebody_looks() -> None:
    for on in (False, True):
        made = PrerequisiteStore()
        made.on = on
        made.read(KEY, ABOUT, "needs 1 GPU; nobody gives way to it: there is no claim")
        made.read(KEY, ABOUT, "needs 1 GPU")
        assert made.lacks(KEY, ABOUT) and made.missing(KEY) == "there is no claim"
        made.expire(1.0)
        assert made.unseen(KEY, ABOUT) == on
