"""Rows of simulated sources that are pushed by the clock, into streams that say so in the language."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.heartbeats.skew import Bound
from headrace.heartbeats.timing import Follow, Timing
from headrace.reference.generation import ArrivedRow, figure_2
from headrace.runtime.driver.endless import live
from headrace.time import BEGINNING
from headrace.workloads.simulated import Behaviour, Sources
from simulated_runs import NAMES, SINGLE, declared, inferred
from watched_clock import SECOND, Clock

STREAM = "CREATE STREAM {} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {};"
PAIRS = "SELECT a.v AS one, b.v AS other FROM a [RANGE 5], b [RANGE 5] WHERE a.ts = b.ts"


def said(timings: list[Timing], slack: int) -> str:
    """The text that declares some timings, with waits that are so many seconds longer."""
    streams, skews = [], []
    for name, timing in zip(NAMES, timings, strict=True):
        disorder = "STRICT" if timing.disorder == -1 else f"DISORDER {timing.disorder}"
        streams.append(STREAM.format(name, f"{disorder} LATENCY {timing.latency + slack} SECONDS"))
        for follow in timing.follows:
            (bound,) = follow.bounds
            behind = "STRICT" if bound.delta == 0 else bound.delta - 1
            others = ", ".join(follow.streams)
            skews.append(f"CREATE SKEW FROM ({others}) TO {name} ({bound.wait + slack} SECONDS, {behind});")
    return "".join([*streams, *skews])


def some_timings(random: Random) -> list[Timing]:
    """Disorder and latency of each stream, and one or two bounds between them."""
    follows: dict[str, list[Follow]] = {name: [] for name in NAMES}
    for _ in range(2):
        first, second = random.sample(NAMES, 2)
        follows[second] = [Follow((first,), (Bound(random.randint(0, 3), random.randint(0, 3)),))]
    return [
        Timing(random.randint(-1, 3), latency=random.randint(0, 2), follows=tuple(follows[name]))
        for name in NAMES
    ]


@pytest.mark.parametrize("seed", range(3))
def test_heartbeats_hold_and_are_as_large_as_they_can_be(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a restart in between. No time passes between the reading of the clock and the rows of a moment,
    so that sources keep to waits that are a second shorter than those that are declared."""
    monkeypatch.setattr(live, "_LOOK", 0.001)
    monkeypatch.setattr(live, "_SHORTEST", 0.001)
    clock, random = Clock(), Random(seed)
    timings = some_timings(random)
    text = said(timings, slack=1)
    sent = Sources(declared(timings), Behaviour(), random).run(12)

    def start() -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store", clock=clock)
        db.execute(text)
        for name, query in {**SINGLE, "pairs": PAIRS}.items():
            db.query(query, name=name)
        db.start()
        clock.wait_for_looks()
        return db

    db, begin, seen, restarted = start(), clock.instant, list[ArrivedRow](), False
    bounds = inferred(declared(list(db.timings.values())))
    latencies = [timing.latency // SECOND for timing in db.timings.values()]
    waits = {pair: [(wait // SECOND, delta) for wait, delta in found] for pair, found in bounds.items()}
    before = [BEGINNING] * 3
    for now in range(20):
        assert clock.instant == begin + now * SECOND
        rows = [row for row in sent if row.arrives == now]
        for row in rows:
            db.push(NAMES[row.stream], {"v": now, "ts": row.instant})
        seen += [(now, row.stream, row.instant) for row in rows]
        taus = figure_2(waits, latencies, seen, now)
        largest = [BEGINNING if tau is None else tau + 1 for tau in taus]
        # Waits end at multiples of a granule, which is less than a second.
        heartbeats = [stream.heartbeat for stream in db.status.streams]
        for least, heartbeat, most in zip(before, heartbeats, largest, strict=True):
            assert least <= heartbeat <= most
        before = largest
        if rows and now > 6 and not restarted:
            db.close()
            clock.advance(3600 * SECOND)
            begin += 3600 * SECOND
            db, restarted = start(), True
        clock.let_pass(1)
        # An epoch reads the clock three times: until it is committed, the first look may have made one.
        clock.wait_for_looks()
    assert restarted
    summary = db.stop()
    assert (summary.late, sum(stream.rows for stream in summary.streams)) == (0, len(seen))
    db.close()
