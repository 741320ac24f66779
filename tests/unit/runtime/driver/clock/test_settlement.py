"""When the clock alone is worth an epoch."""

from __future__ import annotations

import pytest

from headrace.runtime.driver.clock.settlement import Settling
from headrace.time import BEGINNING

SECOND = 1_000_000
SETTLING = Settling(("s",), 640 * SECOND)
"""An epoch for every ten seconds."""
NEWEST = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("newest", "before", "after", "passed", "expected"),
    [
        (NEWEST, 1, 9, 8, False),
        (NEWEST, 9, 11, 2, True),
        # Where another stream holds the heartbeat back, it goes no further, and is not left where it was.
        (NEWEST, 1, 5, 10, True),
        (NEWEST, 639, 641, 2, True),
        (NEWEST, 641, 699, 58, False),
        (BEGINNING, 1, 99, 98, False),
    ],
)
def test_an_epoch_is_made_while_rows_can_change_the_answer(
    newest: int, before: int, after: int, passed: int, expected: bool
) -> None:
    instants = NEWEST + before * SECOND, NEWEST + after * SECOND
    assert SETTLING.is_due(newest, *instants, passed * SECOND) is expected
