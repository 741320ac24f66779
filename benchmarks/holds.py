"""What a join of three streams keeps, without and with HEARTBEATS COMMON, where the third stream is behind.

    python benchmarks/holds.py

Each stream has 5 rows per instant, for 150 instants, and a window of 20. An epoch takes 5 instants of one.
The fewer keys there are, the more rows the first join yields for each that it takes. Rows are the most that
were kept after any epoch; nothing is timed.
"""

from __future__ import annotations

from typing import Final

from headrace import Database, connect
from headrace.language.statements.statements import Heartbeats
from results import Section

ROWS: Final = 5
INSTANTS: Final = 150
SIZE: Final = 20
EPOCH: Final = 5
KEYS: Final = (80, 40, 20, 10, 4)
"""How many different keys."""
BEHIND: Final = (0, 100)
"""How many instants the third stream is behind."""
_NAMES: Final = ("a", "b", "c")


def section() -> Section:
    """All figures."""
    rows = []
    for keys in KEYS:
        cells = [f"{most:,}" for behind in BEHIND for most in compare(keys, behind)]
        rows.append((f"{ROWS * SIZE / keys:g}", *cells))
    heads = ["pairs per row"]
    for behind in BEHIND:
        where = f"{behind} behind" if behind else "in step"
        heads += [f"c {where}: OPERATOR", "COMMON"]
    return Section("What waiting for a slower stream saves: rows of state", tuple(heads), tuple(rows))


def compare(keys: int, behind: int) -> list[int]:
    """The most rows of state, without operators that wait and with them.

    Args:
        keys: how many different keys there are.
        behind: how many instants the third stream is behind.
    """
    found = []
    for heartbeats in (Heartbeats.OPERATOR, Heartbeats.COMMON):
        with connect(runner="inline", buckets=1, keep_results=False) as db:
            found.append(most_kept(db, heartbeats, keys, behind))
    return found


def most_kept(db: Database, heartbeats: Heartbeats, keys: int, behind: int) -> int:
    """The same of one query."""
    for name in _NAMES:
        db.execute(f"CREATE STREAM {name} (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    windows = ", ".join(f"{name} [RANGE {SIZE}] {name}" for name in _NAMES)
    db.execute(
        f"CREATE QUERY q HEARTBEATS {heartbeats.value} AS "
        f"SELECT a.k FROM {windows} WHERE a.k = b.k AND b.k = c.k"
    )
    db.start()
    most = 0
    for begin in range(0, INSTANTS + behind, EPOCH):
        for name, delay in zip(_NAMES, (0, 0, behind), strict=True):
            times = [at - delay for at in range(begin, begin + EPOCH) if 0 <= at - delay < INSTANTS]
            rows = [{"k": (ROWS * at + row) % keys, "ts": at} for at in times for row in range(ROWS)]
            if rows:
                db.push(name, rows)
        most = max(most, sum(operator.state_rows for operator in db.status.operators))
    db.stop()
    return most


if __name__ == "__main__":
    print(section())
