"""PSoup's three ways to answer a standing query answer alike."""

from __future__ import annotations

from papers.psoup import WAYS, asked


def test_what_is_kept_does_not_change_the_answer() -> None:
    answers, _ = asked(300, 2)
    found = [sorted(map(tuple, (row.values() for row in answers[name].to_pylist()))) for name in WAYS]
    assert found[0] == found[1] == found[2]
    assert 20 < len(found[0]) < 200
