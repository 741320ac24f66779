"""Relations by changes: the definition by hand."""

from __future__ import annotations

from headrace.reference.changes import RowChange, content_after, history_after
from headrace.time import INFINITY


def change(
    instant: int, key: str, value: int, *, deletes: bool = False, version: int | None = None
) -> RowChange:
    return RowChange(instant, (key,), version, deletes, (key, value))


def test_the_last_change_of_each_key_counts() -> None:
    changes = [
        change(5, "a", 2),
        change(1, "a", 1),
        change(3, "b", 7),
        change(8, "a", 0, deletes=True),
        change(9, "c", 0, deletes=True),
        change(12, "a", 4),
    ]
    assert history_after(changes) == [
        (("a", 1), 1, 5),
        (("b", 7), 3, INFINITY),
        (("a", 2), 5, 8),
        (("a", 4), 12, INFINITY),
    ]
    assert not content_after(changes, 0)


def test_changes_of_one_instant_follow_their_versions() -> None:
    changes = [change(1, "a", 9, version=1), change(1, "a", 5, version=2), change(1, "a", 7)]
    assert content_after(changes, 1) == {("a", 5): 1}
    gone = [*changes, change(1, "a", 5, version=3, deletes=True)]
    assert not content_after(gone, 1)


def test_without_a_version_a_deletion_comes_first_and_the_largest_row_last() -> None:
    changes = [change(1, "a", 5), change(1, "a", 9, deletes=True), change(1, "a", 4)]
    assert content_after(changes, 1) == {("a", 5): 1}
