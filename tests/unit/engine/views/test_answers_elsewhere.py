"""Answers as data frames, by name, at the latest final instant, and as shells and notebooks show them."""

from __future__ import annotations

import importlib
import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.shown.display import show_tables_in_notebooks
from headrace.errors import UserError

ROWS = pa.table({"k": ["a", "b", "a"], "v": [2**53 + 1, 2, 3], "ts": [1, 2, 30]})
OPEN = "SELECT MAX(v) AS top FROM s [RANGE UNBOUNDED]"


@pytest.fixture
def db() -> Any:
    with hr.connect(runner="inline", dialect="pipes") as made:
        made.stream("s", ROWS, timestamp="ts")
        yield made


def test_pandas_keeps_integers_beside_nulls(db: hr.Database) -> None:
    query = db.query(OPEN)
    db.run()
    frame = query.to_pandas()
    assert frame["valid_to"].dtype == pd.Int64Dtype()
    assert frame["top"].dtype == "int64"
    assert frame["top"].tolist() == [2**53 + 1]
    assert frame["valid_to"].isna().tolist() == [True]
    assert list(query.to_pandas("changes").columns) == ["epoch", "top", "valid_from", "valid_to", "change"]
    assert query.to_pandas("latest")["top"].tolist() == [2**53 + 1]


def test_pandas_gets_a_frame_of_no_rows(db: hr.Database) -> None:
    query = db.query("SELECT k FROM s WHERE v < 0")
    db.run()
    assert query.to_pandas().shape == (0, 3)


def test_polars_has_the_same_rows(db: hr.Database) -> None:
    query = db.query("SELECT k, SUM(v) AS total FROM s [RANGE 5] GROUP BY k")
    db.run()
    frame = query.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dict(as_series=False) == query.history().to_pydict()
    stream = db.query("SELECT ISTREAM(k) FROM s [RANGE 5]")
    db.run()
    assert stream.to_polars("stream").to_dict(as_series=False) == stream.stream().to_pydict()


def test_without_polars_the_error_names_the_package(db: hr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = db.query(OPEN)
    db.run()

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UserError, match="polars is not installed") as caught:
        query.to_polars()
    assert "headrace[polars]" in str(caught.value.hint)


def test_a_view_that_there_is_not_is_refused(db: hr.Database) -> None:
    query = db.query(OPEN)
    db.run()
    with pytest.raises(UserError, match="there is no view explain") as caught:
        query.to_pandas("explain")  # type: ignore[arg-type]
    assert caught.value.hint == "ask for history, changes, stream, latest"


def test_the_inline_runner_makes_no_spark_frames(db: hr.Database) -> None:
    query = db.query(OPEN)
    db.run()
    with pytest.raises(UserError, match="makes no Spark data frames") as caught:
        query.to_spark()
    assert "createDataFrame" in str(caught.value.hint)


def test_queries_are_found_by_name(db: hr.Database) -> None:
    totals = db.query(OPEN, name="Totals")
    other = db.query("SELECT k FROM s")
    assert db["totals"] is db.queries["TOTALS"] is db.queries[0] is totals
    assert db.queries[1:] == (other,)
    with pytest.raises(UserError, match="there is no query total") as caught:
        db["total"]
    assert caught.value.hint == "did you mean Totals?"


def test_where_there_is_no_query_the_hint_says_how_to_make_one(db: hr.Database) -> None:
    with pytest.raises(UserError, match="there is no query s"):
        db["s"]


def test_the_latest_answer_after_a_run_is_that_of_the_newest_row(db: hr.Database) -> None:
    query = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k")
    db.run()
    assert query.heartbeat == hr.INFINITY
    assert query.latest().to_pydict() == query.snapshot(30).to_pydict() == {"k": ["a", "b"], "n": [2, 1]}


def test_the_latest_answer_of_a_live_run_is_final() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        query = db.query("SELECT MAX(v) AS top FROM s [RANGE 100]")
        with pytest.raises(UserError, match="has no answer yet"):
            query.latest()
        db.start()
        assert query.latest().num_rows == 0
        assert query.heartbeat == hr.BEGINNING
        db.push("s", [{"v": 1, "ts": 10}, {"v": 2, "ts": 20}])
        # A row of 17 may come yet, so that the answer at 20 is not known.
        assert query.heartbeat == 17
        assert query.latest().to_pydict() == query.snapshot(16).to_pydict() == {"top": [1]}
        with pytest.raises(UserError, match="at 17 is not final yet, only below 17") as caught:
            query.snapshot(17)
        assert "latest()" in str(caught.value.hint)


def test_the_latest_answer_without_rows_is_empty() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", ROWS.slice(0, 0), timestamp="ts")
        query = db.query("SELECT k FROM s [RANGE 5]")
        db.run()
        assert query.latest().to_pydict() == {"k": []}


def test_the_latest_answer_looks_at_all_streams(db: hr.Database) -> None:
    db.stream("other", pa.table({"k": ["a"], "ts": [40]}), timestamp="ts")
    query = db.query("SELECT k FROM s [RANGE 5] UNION ALL SELECT k FROM other [RANGE 5]")
    db.run()
    assert query.latest().to_pydict() == {"k": ["a"]}
    assert query.snapshot(30).num_rows == 1


def test_texts_say_how_far_a_query_is(db: hr.Database) -> None:
    query = db.query(OPEN, name="top")
    assert repr(query) == "<Query top (top BIGINT), has no answer yet>"
    assert repr(db) == "<Database at rest; streams: s; queries: top>"
    summary = db.run()
    assert repr(query) == "<Query top (top BIGINT), final>"
    assert f"{summary}".startswith("3 rows in 0.")
    assert "profile" not in repr(summary)
    assert "\n" not in repr(summary)
    assert summary.profile.epochs == summary.epochs


def test_a_time_in_a_text_is_readable() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT v FROM s [RANGE 1 MINUTE]", name="q")
        db.start()
        assert "nothing is final yet" in repr(query)
        db.push("s", {"v": 1, "ts": datetime(2024, 1, 1, 12, tzinfo=UTC)})
        assert repr(query).endswith("final below 2024-01-01T12:00:00Z>")
        assert repr(db).startswith("<Database running")
        with pytest.raises(UserError, match="is not final yet, only below 2024-01-01T12:00:00Z"):
            query.snapshot("2024-01-02T00:00:00Z")


def test_notebooks_show_escaped_tables() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        texts = ["<b>", None, "x" * 300]
        db.stream("s", pa.table({"<k>": texts, "ts": [1, 2, 3]}), timestamp="ts")
        query = db.query("SELECT `<k>` FROM s", name="<q>")
        before = query._repr_html_()
        assert "&lt;q&gt;" in before
        assert "<pre>" in before
        summary = db.run()
        html = query._repr_html_()
        for made in (html, db._repr_html_(), summary._repr_html_(), db.queries._repr_html_()):
            assert made.startswith("<table>")
            assert "<b>" not in made
            assert "<k>" not in made
            assert "<q>" not in made
        assert "<td>&lt;b&gt;</td>" in html
        assert "<td><i>NULL</i></td>" in html
        assert "x" * 200 + "…" in html
        assert "3 rows" in html


def test_notebooks_show_the_first_rows_of_long_answers() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", pa.table({"ts": list(range(50))}), timestamp="ts")
        query = db.query("SELECT ts FROM s")
        db.run()
        html = query._repr_html_()
        assert html.count("<tr>") == 21
        assert "first 20 of 50 rows" in html


def test_notebooks_show_the_notes_of_a_query(db: hr.Database) -> None:
    query = db.query("SELECT COUNT(*) AS n FROM s WHERE k <> '<'")
    before = query._repr_html_()
    db.run()
    for html in (before, query._repr_html_()):
        assert "<div>note at 1:27: s has no window" in html
    assert "note" not in db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]")._repr_html_()


class Formatter(dict[type, Any]):
    """IPython's formatter of HTML, as far as it is used."""

    print_method = "_repr_html_"
    for_type = dict.__setitem__


def test_notebooks_show_arrow_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = Formatter()
    display = SimpleNamespace(formatters={"text/html": formatter})
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    show_tables_in_notebooks()
    assert not formatter
    ipython.get_ipython = lambda: SimpleNamespace(display_formatter=display)
    show_tables_in_notebooks()
    assert "<td>1</td>" in formatter[pa.Table](pa.table({"a": [1]}))
    assert "<td>{&quot;b&quot;:1}</td>" in formatter[pa.Table](pa.table({"a": [{"b": 1}]}))
    # Arrow makes no texts of unions.
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    assert formatter[pa.Table](pa.table({"a": union})) is None


def test_notebooks_show_arrow_tables_as_others_have_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = Formatter({pa.Table: repr})
    display = SimpleNamespace(formatters={"text/html": formatter})
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(display_formatter=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    show_tables_in_notebooks()
    assert formatter == {pa.Table: repr}


def test_a_plan_is_shown_line_by_line(db: hr.Database) -> None:
    query = db.query("SELECT k FROM s WHERE k < 'b' AND v > 1")
    plan = query.explain("logical")
    assert repr(plan) == plan
    assert "\n" in plan
    assert plan._repr_html_().startswith("<pre>")
    assert "&lt;" in plan._repr_html_()
    (explained,) = db.execute("EXPLAIN LOGICAL SELECT k FROM s")
    assert repr(explained) == explained
