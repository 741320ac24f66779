"""How much processor time the work of operators takes, fitted to what runs have taken.

Runs are in this process, over NEXMark's events in Parquet files, after one of each query that warms up. Their
operators' seconds are of processor time, so that what else the machine does does not count.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Final
from unittest.mock import patch

import numpy as np

from headrace import Database, connect
from headrace.algebra.nodes import Relation, Source
from headrace.lowering.costs import sent, stored
from headrace.lowering.graph import Graph
from headrace.optimizer.cost.machine import Constants, Machine
from headrace.optimizer.cost.work import NodeCounts, Work, WorkKind, reading, work_of
from headrace.runtime.driver.facts.status import OperatorStatus
from headrace.runtime.tasks.task import label
from headrace.workloads.nexmark import TABLES
from headrace.workloads.nexmark.queries import SIDE_INPUT
from results import machine

_FEATURES: Final = ("taken", "given", "kept", "epochs")
_FLOOR: Final = 0.02
"""What takes less than this part of a run need not be met as closely."""

_EPOCHS: Final = (15_000, 100_000)
"""Constants are fitted to runs with epochs of so many rows."""
_ROUNDS: Final = 4
_STEPS: Final = 10_000
_NEAR: Final = 1e-9


@dataclass(frozen=True)
class Ran:
    """What a run of a query did, and took.

    Attributes:
        name: the query.
        rows: that it read.
        works: what was done, in groups that were measured together.
        seconds: the processor time of each.
        operators: what each operator had done and kept after each epoch.
        result: the number of the operator that yields the result.
    """

    name: str
    rows: int
    works: tuple[tuple[Work, ...], ...]
    seconds: tuple[float, ...]
    operators: Sequence[Sequence[OperatorStatus]]
    result: int


FITTED: Final[Mapping[str, str]] = {
    "rows": "SELECT auction, price FROM bid WINDOW(PARTITION BY auction ROWS 3)",
    "rows and sums": "SELECT SUM(price) AS s FROM bid WINDOW(ROWS 1000)",
    "distinct": "SELECT DISTINCT bidder FROM bid WINDOW(RANGE 20 SECONDS)",
    "distinct pairs": "SELECT DISTINCT auction, bidder FROM bid WINDOW(RANGE 10 SECONDS SLIDE 1 SECOND)",
    "median": "SELECT auction, MEDIAN(price) AS m FROM bid WINDOW(RANGE 20 SECONDS) GROUP BY auction",
    "largest": "SELECT auction, MAX(price) AS m FROM bid WINDOW(RANGE 20 SECONDS) GROUP BY auction",
    "smallest of all": "SELECT MIN(price) AS least, MAX(price) AS most FROM bid WINDOW(RANGE 5 SECONDS)",
    "bidders": "SELECT auction, COUNT(DISTINCT bidder) AS n FROM bid WINDOW(RANGE 20 SECONDS) "
    "GROUP BY auction",
    "left join": "SELECT b.price, a.seller FROM bid [NOW] b LEFT JOIN auction WINDOW(RANGE 5 SECONDS) a "
    "ON b.auction = a.id",
    "self join": "SELECT a.price, b.price AS other FROM bid WINDOW(RANGE 5 MILLISECONDS) a "
    "JOIN bid WINDOW(RANGE 5 MILLISECONDS) b ON a.auction = b.auction",
    "insertions": "ISTREAM(SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 20 SECONDS) GROUP BY auction)",
    "sliding filter": "SELECT auction, SUM(price) AS s FROM bid WINDOW(RANGE 60 SECONDS) WHERE price > 50000 "
    "GROUP BY auction",
    "top": "SELECT * FROM (SELECT price, bidder, ROW_NUMBER() OVER (PARTITION BY bidder "
    "ORDER BY price DESC) AS place FROM bid WINDOW(RANGE 10 SECONDS)) WHERE place <= 3",
    "sorted": "SELECT auction, price FROM bid WINDOW(RANGE 2 SECONDS SLIDE 2 SECONDS) "
    "ORDER BY price LIMIT 10",
}
"""Queries that constants are fitted to besides those that are compared, for work that few of these do."""


def statements(text: str) -> list[str]:
    """The statements of a text."""
    return [part for part in re.sub(r"--.*", "", text).split(";") if part.strip()]


def fit(queries: Mapping[str, str], folder: Path, few: Path) -> Machine:
    """The constants of this machine, by runs of queries in short and in long epochs.

    Args:
        queries: by name.
        folder: with NEXMark's events in Parquet files.
        few: with few of them, to warm up.
    """
    runs = []
    for name, text in queries.items():
        ran(name, text, few, _EPOCHS[0])
        runs += [ran(name, text, folder, rows) for rows in _EPOCHS]
        print(name, *(f"{sum(run.seconds):.3f} s" for run in runs[-len(_EPOCHS) :]), file=sys.stderr)
    return fitted(runs)


def database(folder: Path, epoch_rows: int) -> Database:
    """One that has NEXMark's streams, from the files in a folder."""
    db = connect(runner="inline", epoch_rows=epoch_rows, keep_results=False)
    db.relation("side_input", SIDE_INPUT, key="key")
    for table in TABLES:
        db.execute(f"CREATE STREAM {table} FROM parquet OPTIONS (path '{folder / table}') TIMESTAMP BY ts")
    return db


def ran(name: str, text: str, folder: Path, epoch_rows: int) -> Ran:
    """Run a query, and measure it."""
    seen: list[Sequence[OperatorStatus]] = []
    with database(folder, epoch_rows) as db:
        *before, asked = statements(text)
        for statement in before:
            db.execute(statement)
        query = db.query(asked)
        # Processor time, wherever a task asks for the time.
        with patch("headrace.runtime.tasks.profile.time.perf_counter", time.process_time):
            summary = db.run(lambda _: seen.append(db.status.operators))
        graph, result = db.status.graph, db.status.query(query.name).chain[0].node
    given = [part.rows_out for part in seen[-1]]
    counts = {
        node.number: NodeCounts(
            sum(given[edge.producer] for edge in node.inputs),
            given[node.number],
            mean(part[node.number].state_rows for part in seen),
            summary.epochs,
        )
        for node in graph.nodes
    }
    took: dict[str, float] = {}
    for (_, what), seconds in summary.profile.tasks.items():
        took[what] = took.get(what, 0.0) + seconds
    groups = list(_groups(graph, counts, took))
    works = tuple(part for part, _ in groups)
    return Ran(name, summary.rows, works, tuple(seconds for _, seconds in groups), seen, result)


def _groups(
    graph: Graph, counts: Mapping[int, NodeCounts], took: Mapping[str, float]
) -> Iterator[tuple[tuple[Work, ...], float]]:
    """What was measured together, and its seconds."""
    sources = [node for node in graph.nodes if isinstance(node.plan, Source | Relation)]
    reads = tuple(work for node in sources for work in reading(node.plan.schema, counts[node.number]))
    yield reads, sum(took.get(what, 0.0) for what in ("read", "take in"))
    rows = {number: part.given for number, part in counts.items()}
    epochs = counts[0].epochs
    yield (
        tuple(work for node in graph.nodes for work in sent(graph, node, rows, epochs)),
        took.get("route", 0.0),
    )
    yield (
        tuple(work for node in graph.nodes for work in stored(node, counts[node.number])),
        sum(took.get(what, 0.0) for what in ("load state", "store state")),
    )
    for node in graph.nodes:
        if node not in sources:
            yield work_of(node.plan, counts[node.number]), took.get(label(node), 0.0)


def fitted(runs: Sequence[Ran]) -> Machine:
    """The constants by which works take the seconds that runs have taken, as nearly as can be."""
    columns = [(kind, feature) for kind in WorkKind for feature in _FEATURES]
    lines: list[list[float]] = []
    seconds: list[float] = []
    floors: list[float] = []
    for run in runs:
        for works, measured in zip(run.works, run.seconds, strict=True):
            line = dict.fromkeys(columns, 0.0)
            for work in works:
                for feature in _FEATURES:
                    line[work.kind, feature] += getattr(work, feature)
            lines.append([line[column] for column in columns])
            seconds.append(measured)
            floors.append(_FLOOR * sum(run.seconds))
    table, took = np.array(lines), np.array(seconds)
    near, least = took, np.array(floors)
    for _ in range(_ROUNDS):
        # Relative to the mean of what was measured and what is fitted, so that neither is the smaller one.
        weight = 1 / ((took + near) / 2 + least)
        nearest = _not_negative(table * weight[:, None], took * weight)
        near = table @ nearest
    found = dict(zip(columns, nearest, strict=True))
    constants = {kind: Constants(*(found[kind, feature] for feature in _FEATURES)) for kind in WorkKind}
    return Machine(f"{machine()}, Headrace {version('headrace')}", constants)


def _not_negative(lines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """float64[columns], not negative, by which lines come nearest to what is wanted: least squares."""
    scale = np.sqrt((lines**2).sum(axis=0))
    used = scale > 0
    scaled = lines[:, used] / scale[used]
    products, target = scaled.T @ scaled, scaled.T @ wanted
    found = np.zeros(int(used.sum()))
    for _ in range(_STEPS):
        before = found.copy()
        for place in range(len(found)):
            rest = target[place] - products[place] @ found + found[place]
            found[place] = max(0.0, rest)
        if np.abs(found - before).max() <= _NEAR * found.max():
            break
    result = np.zeros(len(scale))
    result[used] = found / scale[used]
    return result
