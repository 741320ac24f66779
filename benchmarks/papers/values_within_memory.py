"""DISTINCT and EXCEPT within some memory (STREAM, section 5.3): bytes of state, and what is missed.

Values of a stream are all different, each a STRING of `--bytes` bytes, and are there for a window of `--rows`
rows. The exact operator keeps them; a Bloom filter within three limits of memory misses some. What is missed
is counted beside the exact answer over the last window: of DISTINCT the part of the time for which values are
there, and of EXCEPT the part of the rows. Beside it is what the query says itself: what it expects by the
cells that are in use, and what it has measured of a sample of the values that it keeps exactly.

    python benchmarks/papers/values_within_memory.py [--rows 10000] [--bytes 40]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import headrace as hr
from headrace.byte_sizes import exact_bytes, format_bytes

PARTS = (0.2, 0.1, 0.05)
"""The limits, of the bytes that the exact operator keeps."""
STREAMS = """
CREATE STREAM s (v STRING, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM r (v STRING, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r
"""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=40)
    args = parser.parse_args()
    for text in (
        f"SELECT DISTINCT v FROM s [RANGE {args.rows}]",
        f"ISTREAM(SELECT DISTINCT v FROM s [RANGE {args.rows}])",
        f"SELECT v FROM s [NOW] EXCEPT SELECT v FROM r [RANGE {args.rows}]",
    ):
        print(text)
        kept, _, _ = ran(text, (), args.rows, args.bytes)
        print(f"  exact: {format_bytes(kept)}, {kept / args.rows:.0f} bytes a value")
        limits = [exact_bytes(max(10_000, int(part * kept) // 1000 * 1000)) for part in PARTS]
        _, memories, missed = ran(text, limits, args.rows, args.bytes)
        for limit, (used, expected, measured), share in zip(limits, memories, missed, strict=True):
            print(
                f"  {limit}: keeps {format_bytes(used)}, {used / args.rows:.1f} bytes a value; "
                f"misses {100 * share:.2f} %, expected {100 * expected:.2f} %, measured "
                f"{100 * measured:.2f} %"
            )


def ran(
    text: str, limits: Sequence[str], rows: int, width: int
) -> tuple[int, list[tuple[int, float, float]], list[float]]:
    """Run a query exactly and within limits, over three windows of rows.

    Returns:
        What the exact one keeps (bytes); for each limit the bytes that are kept and the rate of false
        negatives that is expected, and that is measured of a sample; and what it is over the last window.
    """
    with hr.connect(runner="inline", threads=1, buckets=1) as db:
        db.execute(f"{STREAMS}; CREATE QUERY exact AS {text}")
        for number, limit in enumerate(limits):
            db.execute(f"CREATE QUERY q{number} WITHIN MEMORY '{limit}' AS {text}")
        db.start()
        for begin in range(0, 3 * rows, rows // 10):
            for stream in "sr":
                instants = range(begin, begin + rows // 10)
                db.push(stream, [{"v": f"{stream}{ts:0{width - 1}}", "ts": ts} for ts in instants])
        names = [f"q{number}" for number in range(len(limits))]
        told = [db.status.query(name).memory for name in names]
        memories = [(one.used, one.expected or 0.0, one.measured or 0.0) for one in told if one is not None]
        whole = _lasting(db, "exact", 2 * rows, 3 * rows)
        missed = [1 - _lasting(db, name, 2 * rows, 3 * rows) / whole for name in names]
        kept = max(one.state_bytes for one in db.status.operators)
    return kept, memories, missed


def _lasting(db: hr.Database, name: str, since: int, until: int) -> int:
    """The instants at which rows are there that came in an interval, over all rows."""
    rows = (row for row in db[name].changes().to_pylist() if since <= int(row["v"][1:]) < until)
    return sum((row["valid_to"] - row["valid_from"]) * row["change"] for row in rows)


if __name__ == "__main__":
    main()
