"""Endless queries that have little to do: what a push costs beside others, and a push to every stream.

    python benchmarks/many_queries.py --numbers --idle 0 60 200 500 --mix 100 300

The first is a push to a stream that one small query reads, beside so many joins of other streams. The second
is the mix of Kraemer's thesis (table 24.1): 30 % joins of two windows, 20 % of three, 20 % of four, left-deep
and bushy, 10 % groups, 20 % joins of groups; a third of the joins without equality. Fifty streams bring two
rows each an epoch. CPU seconds of this process, without Spark; medians of the epochs.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from headrace import Database, connect

_STREAMS: Final = 50
_COLUMNS: Final = "(ts BIGINT, k BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"
_MINUTE: Final = 60_000
"""Timestamps are milliseconds."""


def _rows(at: int, keys: random.Random, count: int = 2) -> pa.Table:
    return pa.table({"ts": [at] * count, "k": [keys.randrange(100) for _ in range(count)], "v": [at] * count})


def _epochs(push: Callable[[int], None], first: int, epochs: int) -> float:
    """The median of the CPU seconds that some epochs take."""
    found = []
    for epoch in range(first, first + epochs):
        begun = time.process_time()
        push(epoch)
        found.append(time.process_time() - begun)
    return statistics.median(found)


def measure_idle(joins: int, epochs: int) -> None:
    """Print what a push costs beside joins that have nothing to do."""
    keys = random.Random(5)
    with connect(runner="inline") as db:
        for name in "axy":
            db.execute(f"CREATE STREAM {name} {_COLUMNS}")
        db.execute("CREATE QUERY small AS SELECT k, COUNT(*) AS n FROM a [RANGE 10] GROUP BY k")
        for place in range(joins):
            db.execute(
                f"CREATE QUERY q{place} AS SELECT x.k, y.v FROM x [RANGE {10 + place}] "
                f"JOIN y [RANGE {11 + place}] ON x.k = y.k"
            )
        db.start()
        for name in "axy" if joins else "a":
            for epoch in range(3):
                db.push(name, _rows(epoch, keys))
        seconds = _epochs(lambda epoch: _push(db, "a", epoch, keys), 3, epochs)
    print(f"a push beside {joins:>5,} idle joins: {seconds * 1e3:8.1f} ms of CPU", flush=True)


def _push(db: Database, name: str, epoch: int, keys: random.Random) -> None:
    db.push(name, _rows(epoch, keys))


def mix(number: int, seed: int = 7) -> list[str]:
    """So many queries of the thesis' mix over fifty streams."""
    chosen = random.Random(seed)
    kinds: Sequence[tuple[int, Callable[[random.Random], str]]] = (
        (30, lambda some: _join(some, 2)),
        (20, lambda some: _join(some, 3)),
        (10, lambda some: _join(some, 4)),
        (10, _bushy),
        (10, lambda some: f"SELECT * FROM {_group(some, 'g')}"),
        (
            10,
            lambda some: f"SELECT g.n, s.v FROM {_group(some, 'g')} JOIN {_window(some)} s ON g.k = s.k",
        ),
        (
            10,
            lambda some: (
                f"SELECT g.n, h.n AS m FROM {_group(some, 'g')} JOIN {_group(some, 'h')} ON g.k = h.k"
            ),
        ),
    )
    weights = [weight for weight, _ in kinds]
    return [chosen.choices([kind for _, kind in kinds], weights)[0](chosen) for _ in range(number)]


def _window(some: random.Random) -> str:
    return f"s{some.randrange(_STREAMS)} [RANGE {some.randrange(1, 31) * _MINUTE}]"


def _pairs(some: random.Random, left: str, right: str) -> str:
    if some.random() < 0.67:
        return f"{left}.k = {right}.k"
    return f"{left}.k - {right}.k BETWEEN 90 AND 91"


def _join(some: random.Random, inputs: int) -> str:
    text = f"SELECT a0.k, a{inputs - 1}.v FROM {_window(some)} a0"
    for place in range(1, inputs):
        text += f" JOIN {_window(some)} a{place} ON {_pairs(some, f'a{place - 1}', f'a{place}')}"
    return text


def _bushy(some: random.Random) -> str:
    pairs = [
        f"(SELECT {one}.k, {other}.v FROM {_window(some)} {one} "
        f"JOIN {_window(some)} {other} ON {one}.k = {other}.k) {name}"
        for one, other, name in (("a", "b", "l"), ("c", "d", "r"))
    ]
    return f"SELECT l.k, r.v FROM {pairs[0]} JOIN {pairs[1]} ON l.k = r.k"


def _group(some: random.Random, name: str) -> str:
    window = _window(some)
    return f"(SELECT {name}0.k, COUNT(*) AS n FROM {window} {name}0 GROUP BY {name}0.k) {name}"


def measure_mix(number: int, epochs: int) -> None:
    """Print what a push to every stream costs with many queries of the thesis' mix."""
    keys = random.Random(5)
    with connect(runner="inline") as db:
        for place in range(_STREAMS):
            db.execute(f"CREATE STREAM s{place} {_COLUMNS}")
        begun = time.process_time()
        for place, text in enumerate(mix(number)):
            db.execute(f"CREATE QUERY q{place} AS {text}")
        db.start()
        defined = time.process_time() - begun
        read = [name for name in (f"s{place}" for place in range(_STREAMS)) if name in str(db.status.streams)]

        def push(epoch: int) -> None:
            for done in [db.push(name, _rows(epoch * 1_000, keys), wait=False) for name in read]:
                done.result()

        warm = _epochs(push, 0, 3)
        before = db.status.epoch
        seconds = _epochs(push, 3, epochs)
        made = db.status.epoch - before
    print(
        f"a push to {len(read)} streams, {number:>5,} queries of the mix: {seconds * 1e3:8.1f} ms of CPU "
        f"({made / epochs:.1f} epochs; defined in {defined:.1f} s, first pushes {warm * 1e3:.1f} ms)",
        flush=True,
    )
