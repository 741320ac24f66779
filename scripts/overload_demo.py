"""Three queries under three times the load that a run can answer: shares, lag and bounds while it runs.

First it is measured how many rows the run answers in a second. Then a part of that comes, then three times as
much, and then a part again; nobody waits for answers before more is sent. A trend is worth nearly as much of
a tenth of the rows, a board as much as its share, and a bill little without all of them. At the end the sum
that the trend says is drawn with its bounds beside the exact one, above the shares that were kept.

    make overload-demo
    python scripts/overload_demo.py [--seconds 30] [--times 3] [--picture build/overload.svg]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.engine.views.frames import optional
from headrace.steps import WHOLE

RANGE: Final = 2000
SLIDE: Final = 200
"""Milliseconds, as instants are here."""
STATEMENTS: Final = f"""
CREATE STREAM click (page STRING, ms BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY trend LOSS TOLERANT (0.1: 0.95) AS
    SELECT COUNT(*) AS n, SUM(ms) AS total FROM click [RANGE {RANGE} SLIDE {SLIDE}];
CREATE QUERY board LOSS TOLERANT AS
    SELECT page, COUNT(*) AS n, SUM(ms) AS ms FROM click [RANGE {RANGE} SLIDE {SLIDE}] GROUP BY page;
CREATE QUERY bill LOSS TOLERANT (0.5: 0.1, 0.9: 0.4) AS
    SELECT page, SUM(ms) AS ms FROM click [RANGE {RANGE} SLIDE {SLIDE}] GROUP BY page
"""
CLAUSES: Final = {
    "LOSS TOLERANT (0.1: 0.95)": "trend",
    "LOSS TOLERANT": "board",
    "LOSS TOLERANT (0.5: 0.1, 0.9: 0.4)": "bill",
}
PAGES: Final = pa.array([f"/page/{number}" for number in range(20_000)])
CALM: Final = 0.5
"""So much of what the run can answer comes before and after the overload."""
BEAT: Final = 0.05
"""Seconds between two portions of rows."""


@dataclass
class Clicks:
    """Rows as they come, and what was sent of them.

    Attributes:
        draw: makes them.
        ts, ms: of each portion the instants and values.
    """

    draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    ts: list[np.ndarray] = field(default_factory=list)
    ms: list[np.ndarray] = field(default_factory=list)

    def portion(self, first: int, last: int, count: int) -> pa.Table:
        """Rows of some instants; how long pages take follows a power law, and goes up and down."""
        ts = np.linspace(first, last, count, endpoint=False).astype(np.int64)
        ms = np.minimum(self.draw.zipf(1.8, count), 5_000) * (3 + np.sin(ts / 1500))
        ms = ms.astype(np.int64)
        self.ts.append(ts)
        self.ms.append(ms)
        pages = PAGES.take(pa.array(self.draw.integers(0, len(PAGES), count)))
        return pa.table({"page": pages, "ms": ms, "ts": ts})

    def total(self, instant: int) -> int:
        """The exact sum of the window that ends at an instant."""
        ts, ms = np.concatenate(self.ts), np.concatenate(self.ms)
        first, last = np.searchsorted(ts, (instant - RANGE + 1, instant + 1))
        return int(ms[first:last].sum())


@dataclass(frozen=True)
class Moment:
    """A run as it is to be seen after a second.

    Attributes:
        instant: the newest that has been sent (milliseconds).
        shares: the share of the rows of each query that is kept, by name.
        behind: for how long rows wait (seconds); None where that is not known.
    """

    instant: int
    shares: dict[str, float]
    behind: float | None


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo, and draw its picture; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30, help="for how long rows come")
    parser.add_argument("--times", type=float, default=3, help="how many times the load that can be answered")
    parser.add_argument("--picture", type=Path, default=Path("build/overload.svg"))
    options = parser.parse_args(words)
    with hr.connect(runner="inline", latency_bound="1 second") as db:
        db.execute(STATEMENTS)
        db.start()
        clicks = Clicks()
        capacity, begun = measured(db, clicks)
        print(
            f"the run answers about {capacity:,.0f} rows a second; {options.times:g} times as many will come"
        )
        print(
            f"{'time':>6} {'rows/s':>9} {'behind':>8}  "
            + "  ".join(f"{name:>6}" for name in CLAUSES.values())
        )
        moments = list(overloaded(db, clicks, begun, options.seconds, options.times, capacity))
        db.stop()
        draw(db, clicks, moments, options.picture)
    return 0


def measured(db: hr.Database, clicks: Clicks) -> tuple[float, int]:
    """The rows that a run answers in a second, and the first instant that was not needed for that."""
    size, rates = 8_000, []
    # The first portions load and compile what later ones use.
    for number in range(8):
        begun = time.perf_counter()
        db.push("click", clicks.portion(number * 100, number * 100 + 100, size))
        rates.append(size / (time.perf_counter() - begun))
    return float(np.median(rates[3:])), 800


def overloaded(
    db: hr.Database, clicks: Clicks, first: int, seconds: float, times: float, capacity: float
) -> Iterator[Moment]:
    """Send rows for some seconds, in the middle half too many; what is to be seen, each second."""
    begun = time.perf_counter()
    sent, shown = 0.0, 0.0
    answered: Future[bool] | None = None
    while sent < seconds:
        now = min(time.perf_counter() - begun, seconds)
        factor = times if 0.25 * seconds <= now < 0.75 * seconds else CALM
        count = int(capacity * factor * (now - sent))
        if count:
            instants = (first + int(1000 * sent), first + int(1000 * now))
            answered = db.push("click", clicks.portion(*instants, count), wait=False)
            sent = now
        if now >= shown + 1 or now >= seconds:
            moment = seen(db, first + int(1000 * now))
            behind = "" if moment.behind is None else f"{moment.behind:.1f} s"
            shares = "  ".join(f"{moment.shares[name]:>6.3f}" for name in CLAUSES.values())
            print(f"{now:>4.0f} s {capacity * factor:>9,.0f} {behind:>8}  {shares}", flush=True)
            yield moment
            shown = now
        time.sleep(BEAT)
    if answered is not None:
        # What waits is answered, too, before the run is stopped.
        answered.result()


def seen(db: hr.Database, instant: int) -> Moment:
    """The shares and the lag of now."""
    found = db.status.shedding
    shares = dict.fromkeys(CLAUSES.values(), 1.0)
    if found is None:
        return Moment(instant, shares, None)
    shares |= {CLAUSES[one.tuning.loss]: one.share / WHOLE for one in found.shares}
    return Moment(instant, shares, found.behind)


def draw(db: hr.Database, clicks: Clicks, moments: Sequence[Moment], path: Path) -> None:
    """Write the picture, and print how often bounds held."""
    trend = db["trend"]
    rows: list[dict[str, Any]] = []
    for instant in range(moments[0].instant, min(moments[-1].instant, trend.horizon), SLIDE):
        at = instant // SLIDE * SLIDE - 1
        for said in trend.snapshot(at).to_pylist():
            known = {"low": said["total_low"], "high": said["total_high"], "said": said["total"]}
            rows.append({"second": at / 1000, "exact": clicks.total(at), **known})
    bounded = [row for row in rows if row["low"] is not None]
    held = sum(row["low"] <= row["exact"] <= row["high"] for row in bounded)
    print(f"bounds of the trend hold in {held} of {len(bounded)} windows")
    shares = [
        {"second": moment.instant / 1000, "query": name, "share": share}
        for moment in moments
        for name, share in moment.shares.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(rows, shares).save(str(path))
    print(f"the picture is {path}")


def picture(rows: list[dict[str, Any]], shares: list[dict[str, Any]]) -> Any:
    """The band of the trend with the exact sum in it, above the shares."""
    alt = optional("altair", "plot")
    second = alt.X("second:Q", title="seconds")
    base = alt.Chart(alt.Data(values=rows), width=700, height=260)
    band = base.mark_area(opacity=0.3).encode(
        x=second, y=alt.Y("low:Q", title="sum of the last 2 seconds"), y2="high:Q"
    )
    exact = base.mark_line(color="black", strokeWidth=1).encode(x=second, y="exact:Q")
    said = base.mark_line(strokeWidth=1).encode(x=second, y="said:Q")
    kept = (
        alt.Chart(alt.Data(values=shares), width=700, height=140)
        .mark_line(interpolate="step-after")
        .encode(
            x=second,
            y=alt.Y("share:Q", title="share of the rows kept", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("query:N", title=None),
        )
    )
    return alt.vconcat(band + said + exact, kept)


if __name__ == "__main__":
    raise SystemExit(main())
