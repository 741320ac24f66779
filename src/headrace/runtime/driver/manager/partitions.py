"""The partitions that windows of rows have, by the rows that are in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, size_of
from headrace.runtime.driver.manager.below import WindowsBelow
from headrace.runtime.driver.manager.rows_by_time import RowsByTime
from headrace.runtime.driver.manager.state_kept import OperatorsKept

_SOON: Final = 4
"""A window is taken to be shorter in all partitions when so many rows have come for each."""


class _Look(NamedTuple):
    """A window of rows after a commit.

    Attributes:
        come: how many rows its streams had brought.
        rows: how many rows of state it had.
    """

    come: int
    rows: int


@dataclass
class RowPartitions:
    """Follows windows of rows: a window of s rows has p s rows, where p is the number of its partitions.

    A partition that has fewer rows than its window may have counts for a part of one. State has rows besides
    that have left, until it is put together the next time: so the fewest rows count that there were while as
    many came as there are. Right after a change of the size the number is the one of before: each partition
    gets shorter with its own next row, and longer by one row for each.

    Attributes:
        known: by the identity of an operator how many partitions it has.
        sizes: the size of its window.
        looks: those of the time that counts.
    """

    known: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    looks: dict[str, list[_Look]] = field(default_factory=dict)

    def of(self, operator: str) -> float:
        """The partitions of a window; 1 before it has rows."""
        return self.known.get(operator, 0.0) or 1.0

    def rows(self, operator: str) -> float:
        """The rows in a window; 0 of one that is not there yet."""
        return self.known.get(operator, 0.0) * self.sizes.get(operator, 0)

    def look(
        self, below: WindowsBelow, kept: OperatorsKept, tunings: Tunings, arrived: Mapping[str, RowsByTime]
    ) -> None:
        """Count again.

        Args:
            below: the windows.
            kept: the rows in them.
            tunings: the sizes that have changed.
            arrived: the rows of streams by time.
        """
        windows = [below.windows[number] for number in below.of_rows]
        here = {window.operator for window in windows}
        for known in (self.known, self.sizes, self.looks):
            for gone in known.keys() - here:
                del known[gone]
        for window in windows:
            assert window.tuning is not None
            name, size = window.operator, size_of(window.tuning, tunings)
            looks, rows = self.looks.setdefault(name, []), kept.rows.get(name, 0)
            come = sum(arrived[stream].total for stream in window.tuning.streams if stream in arrived)
            if not self.has_taken_effect(below, window.tuning, tunings, arrived):
                looks.clear()
                self.known.setdefault(name, rows / size)
            else:
                looks.append(_Look(come, rows))
                while len(looks) > 1 and looks[0].come < come - self.rows(name):
                    del looks[0]
                most = rows if window.is_partitioned else min(rows, size)
                self.known[name] = min(most, *(look.rows for look in looks)) / size
            self.sizes[name] = size

    def has_taken_effect(
        self, below: WindowsBelow, tuning: Tuning, tunings: Tunings, arrived: Mapping[str, RowsByTime]
    ) -> bool:
        """Whether the last change of a size is to be seen in the rows that are kept, or there was none.

        Args:
            below: the windows.
            tuning: says the size.
            tunings: the sizes that have changed.
            arrived: the rows of streams by time.
        """
        assert tuning.kind is TuningKind.ROWS
        steps = tunings[tuning].steps if tuning in tunings else ()
        if not steps:
            return True
        size, before = steps[-1].value, steps[-2].value if len(steps) > 1 else tuning.first
        windows = (below.windows[number] for number in below.of_rows)
        most = max((self.of(one.operator) for one in windows if one.tuning == tuning), default=1.0)
        come = sum(arrived[name].since(steps[-1].begin) for name in tuning.streams if name in arrived)
        return come >= most * max(_SOON, size - before)
