"""The queries of NEXMark beside DuckDB: the same rows with the same intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headrace
from headrace.errors import UserError
from headrace.time import INFINITY, ManualClock
from headrace.workloads.nexmark import TABLES, Nexmark, generate
from headrace.workloads.nexmark.queries import SIDE_INPUT, nexmark_queries, nexmark_query
from how_many import how_many
from nexmark_in_duckdb import TEXTS, as_numbers, expected

BEFORE_MIDNIGHT = 1_704_153_590_000_000
"""Ten seconds before the second of January 2024."""
SPECS = {
    "in order": Nexmark(600, rate=20, start=BEFORE_MIDNIGHT),
    "out of order": Nexmark(600, seed=2, rate=20, start=BEFORE_MIDNIGHT, disorder_us=1_000_000),
}
EVENTS = {"q2": 4_000, "q6": 6_000, "q15": 300, "q16": 300}
"""More events, since there is one auction of 123 in 2,050, and none closes before the 2,000th."""


def tables_of(spec: Nexmark) -> dict[str, pa.Table]:
    return {
        name: pa.table(generate(spec, name, 0, spec.events, schema.names)) for name, schema in TABLES.items()
    }


def answer(text: str, tables: Mapping[str, pa.Table], epoch_rows: int) -> Counter[tuple[Any, ...]]:
    with headrace.connect(runner="inline", epoch_rows=epoch_rows) as db:
        for name, table in tables.items():
            db.stream(name, table, timestamp="ts", disorder="1 second")
        db.relation("side_input", SIDE_INPUT, key="key")
        query = db.execute(text)[-1]
        assert isinstance(query, headrace.Query)
        assert all("grows for as long as the query runs" in note.message for note in query.notes)
        summary = db.run()
        assert summary.dead_letters == 0
        return rows_of(query.history())


def rows_of(history: pa.Table) -> Counter[tuple[Any, ...]]:
    *columns, until = as_numbers(history).columns
    return Counter(zip(*(part.to_pylist() for part in (*columns, until.fill_null(INFINITY))), strict=True))


@pytest.mark.parametrize("order", how_many(["out of order"], list(SPECS)))
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "q12"])
def test_the_history_is_that_of_duckdb(name: str, order: str) -> None:
    tables = tables_of(replace(SPECS[order], events=EVENTS[name]) if name in EVENTS else SPECS[order])
    wanted = expected(name, tables)
    assert wanted
    assert answer(nexmark_query(name).text, tables, epoch_rows=150) == wanted


def test_files_hold_what_is_logged(tmp_path: Path) -> None:
    tables = tables_of(SPECS["in order"])
    with headrace.connect(runner="inline", epoch_rows=150) as db:
        db.stream("bid", tables["bid"], timestamp="ts")
        query = db.execute(nexmark_query("q10").text)[-1]
        assert isinstance(query, headrace.Query)
        query.deliver(headrace.FileSink(tmp_path / "log", format="csv"))
        db.run()
    with duckdb.connect() as database:
        files = f"read_csv('{tmp_path}/log/*.csv', all_varchar = true)"
        logged = database.execute(f"SELECT dt, hm, auction, extra FROM {files}").fetchall()
    wanted = [(row[5], row[6], str(row[0]), row[4]) for row in expected("q10", tables)]
    assert len(list((tmp_path / "log").glob("*.csv"))) > 3
    assert sorted(logged) == sorted(wanted)


class Running(ManualClock):
    """A clock that is three seconds later at each look."""

    def now(self) -> int:
        self.advance(3_000_000)
        return self.instant


def test_bids_by_the_clock_are_those_of_duckdb() -> None:
    bids = tables_of(SPECS["in order"])["bid"]
    with headrace.connect(runner="inline", epoch_rows=50, clock=Running(BEFORE_MIDNIGHT)) as db:
        db.stream("arriving", bids, timestamp=headrace.ByArrival())
        counts = db.execute(nexmark_query("q12").text)[-1]
        arrivals = db.query("SELECT bidder, arrival AS ts FROM arriving")
        assert isinstance(counts, headrace.Query)
        db.run()
        stamped = arrivals.history().select(["bidder", "ts"])
        assert len(set(stamped["ts"].to_pylist())) > 4
        assert rows_of(counts.history()) == expected("q12", {"arriving": stamped})


def test_every_query_is_compared() -> None:
    assert [query.name for query in nexmark_queries()] == list(TEXTS)


@pytest.mark.parametrize("name", ["q5", "Q5", "q05", "5"])
def test_queries_are_found_by_name(name: str) -> None:
    assert nexmark_query(name).title.startswith("Hot items")


def test_an_unknown_query_is_refused() -> None:
    with pytest.raises(UserError, match="NEXMark has no query q99") as raised:
        nexmark_query("q99")
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("its queries are q0, q1, q2")
