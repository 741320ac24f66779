"""Every call of the system of a run fails once, with every error that it may end with."""

from __future__ import annotations

from collections import Counter

from faulty_runs import Case, cases_of, judged, outcome_of, swept


def test_every_call_fails_with_every_error() -> None:
    plain = outcome_of(Case())
    assert not plain.broken, plain.broken
    cases, counted = cases_of(plain), Counter[str]()
    broken = []
    for outcome in swept(cases):
        counted["ended and went on" if outcome.errors else "went on"] += 1
        counted["failed"] += outcome.failed
        if wrong := judged(outcome, plain):
            broken.append((str(outcome.case.call), outcome.case.kind, wrong))
    print(f"{len(plain.calls)} calls, {len(cases)} cases: {dict(counted)}")
    assert not broken
    # Which polls there are differs from run to run.
    assert counted["failed"] > 0.8 * len(cases)
