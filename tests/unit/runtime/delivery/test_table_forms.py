"""The forms of a table of a database, against what the query says of its answer."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given
from hypothesis import strategies as st

from headrace import Database, TableSink, UserError, connect
from headrace.elements import from_rows
from headrace.history import equivalent
from headrace.runtime.delivery.table_statements import plain
from headrace.time import INFINITY
from how_many import examples
from waiting import wait_for

EVENTS = (
    "SELECT k, v, ts FROM s WHERE v > 0",
    "SELECT k, COUNT(*) AS n, window_end FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY k, window_end",
    "ISTREAM(SELECT k, SUM(v) AS t FROM s [RANGE 3] GROUP BY k)",
)
LASTING = (
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 3] GROUP BY k",
    "SELECT v FROM s [RANGE 4]",
    "SELECT v, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY v",
)
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from((None, "a", "b")), st.integers(0, 2)), max_size=12
)
LATE = [(5, "a", 1), (3, "a", 2), (9, "b", 1), (2, "a", 2), (8, None, 1)]
"""Each but the third and the last changes what was said of later instants."""
LEVELS = st.sampled_from(("STRONG", "MIDDLE", "(BLOCK 1)"))


def answered(path: Path, text: str, rows: Any, epoch_rows: int, level: str, form: str | None) -> Database:
    """A run over rows that come by four instants late at most, and a table of its answer."""
    db = connect(runner="inline", epoch_rows=epoch_rows)
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("ts", "k", "v"))}
    types = {"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}
    table = pa.table({name: pa.array(columns[name], types[name]) for name in types})
    db.stream("s", table, timestamp="ts", disorder=9)
    db.execute(f"CREATE QUERY q CONSISTENCY {level} AS {text}")
    db["q"].deliver(TableSink(lambda: sqlite3.connect(path), "answers", form=form))
    try:
        db.run()
    except UserError:
        db.close()
        raise
    return db


def content(path: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM answers").fetchall()
    finally:
        connection.close()


def plainly(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(plain, row.values())) for row in table.to_pylist())


@examples(15, 60, phases=[Phase.explicit, Phase.generate])
@given(ROWS, st.sampled_from((*EVENTS, *LASTING)), st.integers(1, 4), LEVELS)
def test_changes_are_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, text: str, epoch_rows: int, level: str
) -> None:
    path = tmp_path_factory.mktemp("changes") / "out.db"
    with answered(path, text, rows, epoch_rows, level, "changes") as db:
        assert Counter(content(path)) == plainly(db["q"].changes())


@examples(15, 60, phases=[Phase.explicit, Phase.generate])
@example(LATE, EVENTS[1], 1, "MIDDLE", None)
@example(LATE, EVENTS[2], 1, "MIDDLE", None)
@given(ROWS, st.sampled_from(EVENTS), st.integers(1, 4), LEVELS, st.sampled_from((None, "events")))
def test_events_are_rows_once(
    tmp_path_factory: pytest.TempPathFactory,
    rows: Any,
    text: str,
    epoch_rows: int,
    level: str,
    form: str | None,
) -> None:
    """Also where they were said too early and taken back."""
    path = tmp_path_factory.mktemp("events") / "out.db"
    with answered(path, text, rows, epoch_rows, level, form) as db:
        said = db["q"].stream()
        assert Counter(content(path)) == plainly(said.select(range(said.num_columns - 1)))


@examples(20, 80, phases=[Phase.explicit, Phase.generate])
@example(LATE, LASTING[2], 1, "MIDDLE")
@example(LATE, EVENTS[2], 1, "MIDDLE")
@given(ROWS, st.sampled_from((*EVENTS, *LASTING)), st.integers(1, 4), LEVELS)
def test_the_history_is_that_of_the_query(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, text: str, epoch_rows: int, level: str
) -> None:
    path = tmp_path_factory.mktemp("history") / "out.db"
    with answered(path, text, rows, epoch_rows, level, "history") as db:
        schema = db["q"].schema
        found, wanted = (
            from_rows(schema, [(tuple(row), ts, INFINITY if te is None else te, 1) for *row, ts, te in some])
            for some in (content(path), plainly(db["q"].history()).elements())
        )
        assert equivalent(found, wanted, INFINITY)


def test_a_form_has_to_fit(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    with pytest.raises(UserError, match="there is no form 'all' of a table"):
        TableSink(lambda: sqlite3.connect(path), "answers", form="all")
    with pytest.raises(UserError, match="the rows of q are not events, they come and go"):
        answered(path, LASTING[0], [(1, "a", 1)], 1, "STRONG", "events")


@pytest.mark.filterwarnings("ignore:q is a stream of events")
def test_a_table_keeps_its_form(tmp_path: Path) -> None:
    """One from before there were forms has the present rows, also of events."""
    path, store = tmp_path / "out.db", tmp_path / "store"
    create = (
        "CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT v FROM s"
    )
    for turn in range(4):
        with connect(runner="inline", storage=store) as db:
            db.execute(create)
            form = ("present", None, None, "history")[turn]
            db["q"].deliver(TableSink(lambda: sqlite3.connect(path), "answers", key="v", form=form))
            if turn == 3:
                db.start()
                wait_for(lambda: "has the form 'present'" in str(db.problems))
                db.stop()
                continue
            db.start()
            db.push("s", [{"ts": 2 * turn, "v": turn}, {"ts": 2 * turn + 1, "v": 9}])
            db.stop()
        if turn == 1:
            with sqlite3.connect(path) as connection:
                connection.execute("ALTER TABLE answers_headrace DROP COLUMN form")
        assert content(path) == [(turn,)]


def test_present_rows_of_events_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(
        match="q is a stream of events, of which the table answers has those of the last instant"
    ):
        answered(tmp_path / "out.db", EVENTS[2], [(1, "a", 1)], 1, "STRONG", "present").close()
