"""The many queries of the thesis (section 24.4) under a limit of memory, by application time.

    python -m benchmarks.papers.hour --queries 800 --slow 8 --limit "12 MB" --svg docs/assets/hour.svg

Queries of the mix of table 24.1 over 50 streams, whose rows come at 2 to 600 a minute: joins of two, three
and four windows, and counts of windows with granules, alone and joined. All windows and granules have bounds.
They arrive in the first twenty minutes, the last ninth as a burst in minute 40; an epoch is a minute of all
streams. Of each minute it prints the bytes of state beside what was expected of full windows, the limit, f,
and the processor time. In this process, without Spark.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from headrace import Database, connect

STREAMS: Final = 50
MINUTES: Final = 60
WORDS: Final = (
    *(["join"] * 30 + ["left 3"] * 20 + ["left 4"] * 10 + ["bushy 4"] * 10),
    *(["count"] * 10 + ["count join"] * 10 + ["two counts"] * 10),
)
"""The mix of table 24.1, in hundredths."""
_KEYS: Final = 100
"""Values of the column that is joined by: each pair of rows is joined with a chance of 0.01."""


@dataclass(frozen=True)
class Minute:
    """A minute of application time.

    Attributes:
        minute: which.
        queries: how many there were.
        rows: how many rows came.
        used: the bytes of state at its end.
        expected: those that were expected of full windows.
        working: the bytes that the largest epoch has worked with.
        limit: the limit of memory.
        fraction: how far windows could be from the smallest to the largest.
        seconds: the processor time of its epoch, and of the queries that came.
        epoch: that of its epoch alone.
    """

    minute: int
    queries: int
    rows: int
    used: int
    expected: float
    working: float
    limit: int
    fraction: float
    seconds: float
    epoch: float


def query(number: int, chance: random.Random) -> str:
    """A query of the mix, with bounds of one of a few kinds."""
    kind = WORDS[number * 37 % 100]
    a, b, c, d = (f"s{name} {_window(chance)}" for name in chance.sample(range(STREAMS), 4))
    match kind:
        case "join":
            return f"SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k"
        case "left 3":
            return f"SELECT a.v FROM {a} a JOIN {b} b ON a.k = b.k JOIN {c} c ON a.k = c.k"
        case "left 4":
            three = f"{a} a JOIN {b} b ON a.k = b.k JOIN {c} c ON a.k = c.k"
            return f"SELECT a.v FROM {three} JOIN {d} d ON a.k = d.k"
        case "bushy 4":
            pairs = [f"(SELECT x.k, x.v FROM {x} x JOIN {y} y ON x.k = y.k)" for x, y in ((a, b), (c, d))]
            return f"SELECT p.v FROM {pairs[0]} p JOIN {pairs[1]} q ON p.k = q.k"
        case "count":
            return f"SELECT COUNT(*) AS n FROM {a} {_granules(chance)}"
        case "count join":
            counted = f"(SELECT COUNT(*) AS n FROM {a} {_granules(chance)})"
            return f"SELECT p.n, b.v FROM {counted} p JOIN {b} b ON p.n = b.k"
        case _:
            counts = [f"(SELECT COUNT(*) AS n FROM {one} {_granules(chance)})" for one in (a, b)]
            return f"SELECT p.n FROM {counts[0]} p JOIN {counts[1]} q ON p.n = q.n"


def _window(chance: random.Random) -> str:
    largest = chance.choice((1, 2, 5, 10))
    return f"WINDOW(RANGE MIN {largest * 12} SECONDS, MAX {largest} MINUTES)"


def _granules(chance: random.Random) -> str:
    finest = chance.choice((1, 10, 100, 1000))
    return f"GRANULARITY(COARSEST {finest * 12} MILLISECONDS, FINEST {finest} MILLISECONDS)"


def _arriving(queries: int) -> Iterator[tuple[int, int]]:
    """By minute how many queries there are at its beginning."""
    first = queries - queries // 9
    for minute in range(MINUTES):
        yield minute, queries if minute >= 40 else min(first, first * (minute + 1) // 20)


def _push(db: Database, minute: int, rates: Sequence[int], chance: random.Random) -> int:
    total, begin = 0, minute * 60_000_000
    for stream, rate in enumerate(rates):
        times = sorted(
            chance.randrange(60_000_000) for _ in range(max(1, round(chance.gauss(rate, rate**0.5))))
        )
        # A row at the end of each minute lets time pass in all streams alike.
        times = [begin + at for at in (*times, 59_999_999)]
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us")),
                "k": [chance.randrange(_KEYS) for _ in times],
                "v": [chance.randrange(1_000_000) for _ in times],
            }
        )
        total += len(times)
        db.push(f"s{stream}", table, wait=stream == STREAMS - 1)
    return total


def measure(queries: int, limit: str, slow: int) -> list[Minute]:
    """Run the hour, and print each minute.

    Args:
        queries: how many there are in the end.
        limit: the limit of memory.
        slow: rates are divided by this.
    """
    chance, found, there = random.Random(24), list[Minute](), 0
    rates = [max(1, round(2 + 598 * chance.random() ** 2) // slow) for _ in range(STREAMS)]
    with connect(runner="inline", memory_limit=limit, retain_epochs=3, buckets=1) as db:
        for stream in range(STREAMS):
            db.execute(
                f"CREATE STREAM s{stream} (ts TIMESTAMP, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"
            )
        union = " UNION ALL ".join(f"SELECT v FROM s{stream}" for stream in range(STREAMS))
        db.execute(f"CREATE QUERY reading AS {union}")
        db.start()
        for minute, wanted in _arriving(queries):
            begun = time.process_time()
            if wanted > there:
                texts = (f"CREATE QUERY q{one} AS {query(one, chance)}" for one in range(there, wanted))
                db.execute("; ".join(texts))
                there = wanted
            defined = time.process_time()
            rows = _push(db, minute, rates, chance)
            now, managed = time.process_time(), db.status.managed
            if managed is None or managed.limit is None:
                continue
            found.append(
                Minute(
                    *(minute + 1, there, rows, managed.used, managed.expected, managed.working),
                    *(managed.limit, managed.fraction, now - begun, now - defined),
                )
            )
            _tell(found[-1])
    return found


def _tell(one: Minute) -> None:
    sizes = (one.used, one.expected, one.working, one.limit)
    used, expected, working, limit = (f"{size / 1e6:>6.1f} MB" for size in sizes)
    print(
        f"minute {one.minute:>2}: {one.queries:>5} queries, {one.rows:>6,} rows, {used} of state, {expected} "
        f"expected, {working} worked with, limit {limit}, f {one.fraction:.2f}, "
        f"{one.seconds:>5.1f} s of CPU, {one.epoch:>5.1f} s for the epoch",
        flush=True,
    )


def drawn(minutes: Sequence[Minute]) -> str:
    """The hour as an SVG: bytes and limit above, f and processor time below."""
    width, height, left, top = 640, 150, 60, 30
    most = 1.05 * max(max(one.limit, one.expected, one.used) for one in minutes)
    slowest = max(one.seconds for one in minutes) or 1.0

    def line(values: Sequence[float], scale: float, below: int, style: str) -> str:
        points = " ".join(
            f"{left + (one.minute - 1) * width / 59:.1f},{below + height * (1 - value / scale):.1f}"
            for one, value in zip(minutes, values, strict=True)
        )
        return f'<polyline fill="none" {style} points="{points}"/>'

    def text(x: float, y: float, what: str, colour: str = "#444") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}">{what}</text>'

    second = top + height + 50
    frames = "".join(
        f'<rect x="{left}" y="{below}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>'
        for below in (top, second)
    )
    parts = [
        frames,
        line([one.limit for one in minutes], most, top, 'stroke="#b00" stroke-dasharray="6 3"'),
        line([one.used for one in minutes], most, top, 'stroke="#06c" stroke-width="2"'),
        line([one.expected for one in minutes], most, top, 'stroke="#06c" stroke-dasharray="2 3"'),
        line([one.fraction for one in minutes], 1.05, second, 'stroke="#080" stroke-width="2"'),
        line([one.seconds for one in minutes], 1.05 * slowest, second, 'stroke="#a60"'),
        text(
            left,
            top - 10,
            f"state (line), expected (dots), limit (dashes), up to {most / 1e6:.0f} MB",
            "#06c",
        ),
        text(left, second - 10, "f, from 0 to 1", "#080"),
        text(left + 150, second - 10, f"CPU for a minute, up to {slowest:.0f} s", "#a60"),
        *(
            text(left + at * width / (MINUTES - 1) - 8, second + height + 18, f"{at}")
            for at in range(0, 60, 10)
        ),
        text(left + width - 60, second + height + 18, "minutes"),
    ]
    size = f'width="{width + 90}" height="{second + height + 30}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--limit", default="100 MB")
    parser.add_argument("--slow", type=int, default=1, help="rows come so many times as slowly")
    parser.add_argument("--svg", type=Path, help="where the chart goes")
    given = parser.parse_args(arguments)
    found = measure(given.queries, given.limit, given.slow)
    full = [one for one in found if one.minute > 5]
    off = max((max(one.used / one.expected, one.expected / one.used) for one in full), default=0.0)
    above = [one.minute for one in found if one.used > one.limit]
    print(f"above the limit: {above or 'never'}; measured and expected from minute 6 on: within {off:.2f}")
    print(f"{sum(one.seconds for one in found):.0f} s of CPU")
    if given.svg is not None:
        given.svg.write_text(drawn(found))


if __name__ == "__main__":
    main()
