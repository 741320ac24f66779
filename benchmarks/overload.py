"""The worth of answers under overload: rows left out by utility, the same share of all, and none.

First it is measured what a query of many groups takes at several shares of its rows. Then time is simulated:
rows come at a rate for which a run has just enough time, and at some times that. Three such queries bear
loss, and say what an answer of a part of their rows is worth; one bears none. After each second the policy of
the shedder says which shares are kept from then on, by what the run would be measured to need.

Each line of the table is a run of two minutes: what answers were worth on average over the queries that bear
loss, where an answer that is later than the bound is worth nothing; the shares in the end; and for how long
rows waited on average.

The second table is of three queries whose answer is rows, which say what these are worth by their values: a
sale by its price, of which most are low. Utility is the part of the utility of all rows that is answered in
time. It is measured what its rows take by the threshold; where the same share is kept of all, whatever their
values, rows are taken to cost as much.

    python benchmarks/overload.py [--rows 300000] [--times 1 2 3 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.algebra.tunings.loss import Loss
from headrace.language.parsing.statements.losses import loss_from
from headrace.operators.semantic_drop import BANDS
from headrace.runtime.driver.facts.capacity import HEADROOM
from headrace.runtime.driver.shedder.policy import LEAST, Pressure, ShareKnob, shares_wanted
from headrace.runtime.driver.shedder.values_seen import ValuesSeen
from headrace.steps import WHOLE
from headrace.value_graph import ValueGraph

BOUND = 1.0
"""Seconds that rows may wait."""
SECONDS = 120
DRAIN = 5
"""Seconds until windows have drained."""
KEYS = 97_000
STREAM = "CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
EXACT = "CREATE QUERY exact AS SELECT COUNT(*) AS n FROM s [RANGE 100000 SLIDE 100]"
GROUPS = "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 100000 SLIDE 100] GROUP BY k"
QUERIES = {
    "trend": loss_from("LOSS TOLERANT (0.1: 0.95)"),
    "board": Loss(),
    "bill": loss_from("LOSS TOLERANT (0.5: 0.1, 0.9: 0.4)"),
}
"""A trend is nearly as good of a tenth of the rows, a bill is worth little without the last of them."""
SHARES = (0.01, 0.05, 0.2, 0.5, 1.0)
SALES = ValueGraph(
    "v", ((Decimal(0), Decimal("0.05")), (Decimal(100), Decimal("0.2")), (Decimal(1000), Decimal(1)))
)
"""A sale matters the more the dearer it is."""
ROWS = [f"SELECT DISTINCT k, v FROM s [RANGE {size}]" for size in (20_000, 40_000, 80_000)]
THRESHOLDS = (0.0, 0.1, 0.2, 0.4, 0.8)
Policy = Callable[[Pressure, Sequence[ShareKnob]], tuple[int, ...]]


def uniform(pressure: Pressure, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """The same share of all queries that bear loss, as where rows are dropped at the door."""
    (present,) = {knob.share for knob in knobs}
    cost = sum(knob.cost for knob in knobs)
    rest = pressure.needed - cost * present / WHOLE
    wanted = min(WHOLE, max(LEAST, round(WHOLE * (HEADROOM - rest) / cost))) if cost else present
    if pressure.is_overload:
        present = max(min(wanted, present), present // 4)
    elif pressure.is_calm and wanted > 1.15 * present and all(knob.drained for knob in knobs):
        present = min(wanted, 2 * present)
    return (present,) * len(knobs)


def everything(_: Pressure, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """All rows, whatever the load."""
    return tuple(knob.share for knob in knobs)


POLICIES: dict[str, Policy] = {"by utility": shares_wanted, "uniform": uniform, "all rows": everything}


@dataclass(frozen=True)
class Costs:
    """The time that rows take.

    Attributes:
        rest: of what bears no loss (seconds of processor time for a row).
        shares, each: of one query that bears loss, by the share that it keeps.
    """

    rest: float
    shares: np.ndarray
    each: np.ndarray

    def of(self, share: float) -> float:
        """A row of a query that keeps a share (seconds)."""
        return float(np.interp(share, self.shares, self.each))


def measured(rows: int) -> Costs:
    """The costs by this machine, each of one run over so many rows."""
    ts = np.arange(rows)
    names = pa.array([f"key {number}" for number in range(KEYS)])
    table = pa.table({"k": names.take(pa.array((ts * 7919) % KEYS)), "v": ts % 100, "ts": ts})
    rest = _taken(table, None)
    return Costs(rest, np.array(SHARES), np.array([_taken(table, share) - rest for share in SHARES]))


def sales(rows: int) -> tuple[pa.Table, ValuesSeen]:
    """Sales whose prices are of a lognormal distribution, and what they are worth."""
    prices = np.minimum(np.random.default_rng(5).lognormal(4.0, 1.2, rows), 1e6).astype(np.int64)
    ts = np.arange(rows)
    names = pa.array([f"key {number}" for number in range(KEYS)])
    table = pa.table({"k": names.take(pa.array((ts * 7919) % KEYS)), "v": prices, "ts": ts})
    worth = SALES.utilities(prices.astype(np.float64))
    bands = np.floor(BANDS * (worth + 1e-9)).astype(np.int64)
    counted = [np.bincount(bands, weights=each, minlength=BANDS + 2) for each in (np.ones(rows), worth)]
    return table, ValuesSeen(SALES, np.array(counted))


def measured_sales(table: pa.Table, values: ValuesSeen) -> Costs:
    """The time that rows of the sales take, by the share that thresholds leave."""
    clause = f"LOSS TOLERANT BY v {SALES.text}"
    shares = [values.share(round(threshold * WHOLE)) / WHOLE for threshold in THRESHOLDS]
    rest = _taken(table, None)
    each = [_taken(table, threshold, clause, ROWS, "UTILITY ") - rest for threshold in THRESHOLDS]
    return Costs(rest, np.array(shares[::-1]), np.array(each[::-1]))


def _taken(
    table: pa.Table,
    share: float | None,
    clause: str = "LOSS TOLERANT",
    queries: Sequence[str] = (GROUPS,),
    word: str = "",
) -> float:
    """Processor time for a row, of the exact query alone or with some that keep a share (seconds)."""
    with hr.connect(runner="inline", keep_results=False) as db:
        db.execute(f"{STREAM}; {EXACT}")
        if share is not None:
            for number, query in enumerate(queries):
                db.execute(f"CREATE QUERY q{number} {clause} AS {query}")
        db.start()
        # What is compiled and loaded by the first rows is not counted.
        db.push("s", table.slice(0, 1000))
        if share is not None:
            db.execute(f"ALTER QUERY q0 SET (KEEP {word}{share})")
        db.push("s", table.slice(1000, 1000))
        begun = time.process_time()
        for first in range(2000, len(table), 50_000):
            db.push("s", table.slice(first, 50_000))
        return (time.process_time() - begun) / (len(table) - 2000)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a simulated run; see the module."""

    utility: float
    shares: tuple[float, ...]
    behind: float


def by_share() -> tuple[ShareKnob, ...]:
    """The queries that keep a share, with all rows kept."""
    return tuple(ShareKnob(WHOLE, 0.0, loss.utility) for loss in QUERIES.values())


def run(policy: Policy, rate: float, costs: Costs, known: Sequence[ShareKnob]) -> Outcome:
    """Let rows come at a rate, second by second.

    Args:
        policy: says which shares are kept.
        rate: how many rows come (per second).
        costs: the time that they take.
        known: the queries that bear loss, with all rows kept.
    """
    shares, changed = [WHOLE] * len(known), [-DRAIN] * len(known)
    backlog, worth, behinds = 0.0, [], []
    hashing = costs.of(0.0)
    for second in range(SECONDS):
        each = costs.rest + sum(costs.of(share / WHOLE) for share in shares)
        backlog = max(0.0, backlog + rate - 1 / each)
        behind = backlog * each
        utilities = [one.utility(share) for one, share in zip(known, shares, strict=True)]
        worth.append(float(np.mean(utilities)) if behind <= BOUND else 0.0)
        behinds.append(behind)
        knobs = [
            replace(
                one,
                share=share,
                cost=rate * (costs.of(share / WHOLE) - hashing) * WHOLE / share,
                drained=second >= since + DRAIN,
            )
            for share, one, since in zip(shares, known, changed, strict=True)
        ]
        found = policy(Pressure(rate * each, behind, BOUND), knobs)
        changed = [
            since if share == other else second
            for since, share, other in zip(changed, shares, found, strict=True)
        ]
        shares = list(found)
    return Outcome(float(np.mean(worth)), tuple(share / WHOLE for share in shares), float(np.mean(behinds)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--times", type=float, nargs="+", default=[1, 2, 3, 5])
    arguments = parser.parse_args()
    _print_queries(measured(arguments.rows), arguments.times)
    table, values = sales(arguments.rows)
    _print_sales(measured_sales(table, values), values, arguments.times)


def _print_queries(costs: Costs, loads: Sequence[float]) -> None:
    rate = HEADROOM / (costs.rest + len(QUERIES) * costs.of(1.0))
    each = ", ".join(f"{1e6 * costs.of(share):.2f} at {share:g}" for share in SHARES)
    print(f"a million rows take {1e6 * costs.rest:.2f} s without loss, and one query besides {each}")
    print(f"once the load is {rate:,.0f} rows/s")
    print(
        f"{'load':>5} {'policy':<11} {'utility':>8} "
        f"{' '.join(f'{name:>7}' for name in QUERIES)} {'waiting':>9}"
    )
    for times in loads:
        for name, policy in POLICIES.items():
            found = run(policy, times * rate, costs, by_share())
            shares = " ".join(f"{share:7.3f}" for share in found.shares)
            print(f"{times:4g}x {name:<11} {found.utility:8.3f} {shares} {found.behind:7.2f} s")


def of_sales(values: ValuesSeen) -> dict[str, ShareKnob]:
    """The rows that a query of sales keeps, by policy: those that are worth enough, or a share of all."""
    plain = ShareKnob(WHOLE, 0.0, Loss().utility)
    return {"by utility": values.knob(0, 0.0), "uniform": plain, "all rows": plain}


def _print_sales(costs: Costs, values: ValuesSeen, loads: Sequence[float]) -> None:
    rate = HEADROOM / (costs.rest + costs.of(1.0))
    each = ", ".join(
        f"{1e6 * taken:.2f} at {share:.2f}" for share, taken in zip(costs.shares, costs.each, strict=True)
    )
    print(f"a million sales take {1e6 * costs.rest:.2f} s without loss, and three queries besides {each}")
    print(f"once the load is {rate:,.0f} rows/s")
    print(f"{'load':>5} {'policy':<11} {'utility':>8} {'kept':>7} {'from':>7} {'waiting':>9}")
    for times in loads:
        for name, known in of_sales(values).items():
            found = run(POLICIES[name], times * rate, costs, (known,))
            (share,) = found.shares
            worth = f"{known.number(round(share * WHOLE)) / WHOLE:7.2f}" if name == "by utility" else " " * 7
            print(f"{times:4g}x {name:<11} {found.utility:8.3f} {share:7.3f} {worth} {found.behind:7.2f} s")


if __name__ == "__main__":
    main()
