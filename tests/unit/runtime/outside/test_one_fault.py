"""Whichever call of the system fails once: the answers are those of a run that nothing disturbed."""

from __future__ import annotations

from random import Random

import pytest

from faulty_runs import Case, Outcome, cases_of, judged, outcome_of
from how_many import how_many

SEED = 43


@pytest.fixture(scope="module")
def plain() -> Outcome:
    return outcome_of(Case())


@pytest.mark.slow("each case is a run of its own")
def test_a_call_that_fails_changes_no_answer(plain: Outcome) -> None:
    assert not plain.broken, plain.broken
    assert set(plain.answers) == {"sums", "pairs", "counts", "files", "repeats", "table"}
    assert plain.answers["repeats"] == 1
    for case in spread(plain, how_many(15, 40)):
        outcome = outcome_of(case)
        assert not judged(outcome, plain), (str(case.call), case.kind, judged(outcome, plain))


@pytest.mark.slow("each case is a run of its own")
@pytest.mark.parametrize(
    ("name", "path", "kind", "said"),
    [
        # A folder that cannot be looked at is not gone.
        ("stat", "store/segments", "EIO", "look after its disk"),
        ("memory_map", "store/results/", "EMFILE", "let more files be open"),
        ("memory_map", "store/results/", "ENOMEM", "let it have more memory"),
        ("open", "store/store.json", "EACCES", "let this user read"),
        # What cannot be read is not damaged.
        ("read", "store/commits/", "EIO", "look after its disk"),
        # A lock that cannot be taken is not held by another driver.
        ("flock", "store/lock", "EIO", "cannot use"),
        ("write", "store/lock", "ENOSPC", "free some space"),
    ],
)
def test_an_error_says_what_helps(name: str, path: str, kind: str, said: str, plain: Outcome) -> None:
    calls = [call for call in plain.calls if call.name == name and call.path.startswith(path)]
    outcome = outcome_of(Case(calls[-1], kind))
    assert not judged(outcome, plain), judged(outcome, plain)
    assert not outcome.failed or any(said in error for error in outcome.errors), outcome.errors


@pytest.mark.slow("each case is a run of its own")
def test_a_file_that_cannot_be_looked_at_is_read_later(plain: Outcome) -> None:
    """The looks at followed files and their folder, where they are defined, polled and opened."""
    calls = [call for call in plain.calls if call.name == "stat" and call.path in ("files", "files/N.json")]
    for call in Random(SEED).sample(calls, how_many(4, 12)):
        outcome = outcome_of(Case(call, "EIO"))
        assert not judged(outcome, plain), (str(call), judged(outcome, plain))


def spread(plain: Outcome, count: int) -> list[Case]:
    """So many cases, of as many different places as there are."""
    dice = Random(SEED)
    cases = dice.sample(every := cases_of(plain), len(every))
    first = {(case.call.name, case.call.path): case for case in cases if case.call is not None}
    return dice.sample(sorted(first.values(), key=str), min(count, len(first)))
