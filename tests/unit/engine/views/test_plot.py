"""An answer as a chart: the corners of its lines, its axes, and what cannot be drawn."""

from __future__ import annotations

import importlib
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.views.plot import MOST_ROWS, heat_of, specification_of
from headrace.errors import UserError


def corners(specification: dict[str, Any]) -> dict[str, list[tuple[Any, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {}
    for point in specification["data"]["values"]:
        found.setdefault(point["group"], []).append((point["at"], point["value"]))
    return found


def test_lines_have_steps_and_gaps() -> None:
    history = pa.table(
        {
            "k": ["a", "b", "a", "a"],
            "n": [1, 5, 2, 3],
            "valid_from": [0, 1, 2, 8],
            "valid_to": pa.array([2, None, 4, 9], pa.int64()),
        }
    )
    made = specification_of(history, None, None, "counts")
    assert corners(made) == {
        "a": [(0, 1), (2, 2), (4, 2), (4, None), (8, 3), (9, 3), (9, None)],
        "b": [(1, 5), (9, 5), (9, None)],
    }
    assert made["encoding"]["x"]["type"] == "quantitative"
    assert made["encoding"]["y"]["title"] == "n"
    assert made["encoding"]["color"]["title"] == "k"
    assert made["title"] == "counts"
    assert made["mark"] == {"type": "line", "interpolate": "step-after"}


def test_an_estimate_has_its_bounds_as_a_band() -> None:
    history = pa.table(
        {
            "k": ["a", "a"],
            "n": [10, 12],
            "n_low": pa.array([8, None], pa.int64()),
            "n_high": pa.array([12, None], pa.int64()),
            "m": [1, 2],
            "m_low": [1, 2],
            "m_high": [1, 2],
            "valid_from": [0, 2],
            "valid_to": [2, 4],
        }
    )
    made = specification_of(history, "n", None, "q")
    band, line = made["layer"]
    assert line["mark"] == {"type": "line", "interpolate": "step-after"}
    assert (band["mark"]["type"], band["encoding"]["y"]["field"]) == ("area", "low")
    assert band["encoding"]["y2"] == {"field": "high"}
    drawn = [(point["at"], point["value"], point["low"], point["high"]) for point in made["data"]["values"]]
    assert drawn == [(0, 10, 8, 12), (2, 12, None, None), (4, 12, None, None), (4, None, None, None)]
    assert {point["group"] for point in made["data"]["values"]} == {"a"}
    assert specification_of(history, None, None, "q")["layer"][1]["encoding"]["y"]["title"] == "m"


def test_times_are_drawn_in_utc_and_columns_are_chosen() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    times = pa.array([noon], pa.timestamp("us", tz="UTC"))
    history = pa.table({"k": [None], "m": [1], "n": [2.5], "valid_from": times, "valid_to": times})
    made = specification_of(history, "m", [], "q")
    assert corners(made)[""][0] == ("2024-01-01T12:00:00+00:00", 1)
    assert made["encoding"]["x"]["scale"] == {"type": "utc"}
    assert "color" not in made["encoding"]
    assert list(corners(specification_of(history, None, None, "q"))) == ["NULL, 1"]


@pytest.mark.parametrize(
    ("value", "by", "message", "hint"),
    [
        ("m", None, "there is no column m", "did you mean n?"),
        ("k", None, "k is not a column of numbers", "draw n"),
        (None, ["kk"], "there is no column kk", "did you mean k?"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    value: str | None, by: list[str] | None, message: str, hint: str
) -> None:
    history = pa.table({"k": ["a"], "n": [1], "valid_from": [0], "valid_to": [1]})
    with pytest.raises(UserError, match=message) as caught:
        specification_of(history, value, by, "q")
    if message != "there is no column m":
        assert caught.value.hint == hint
    with pytest.raises(UserError, match="no column of numbers can be drawn"):
        specification_of(history.drop_columns(["n"]), None, None, "q")


def timed(starts: list[datetime], ends: list[datetime]) -> pa.Table:
    dtype = pa.timestamp("us", tz="UTC")
    values = pa.array(range(len(starts)), pa.int64())
    return pa.table({"n": values, "valid_from": pa.array(starts, dtype), "valid_to": pa.array(ends, dtype)})


@pytest.mark.parametrize(
    ("length", "form", "title"),
    [
        (timedelta(seconds=1), "%H:%M:%S.%L", "2024-05-01, UTC"),
        (timedelta(minutes=4), "%H:%M:%S", "2024-05-01, UTC"),
        (timedelta(hours=11), "%H:%M", "2024-05-01, UTC"),
        (timedelta(hours=30), "%H:%M", "2024-05-01 to 2024-05-02, UTC"),
        (timedelta(days=10), "%d %b %H:%M", "time (UTC)"),
        (timedelta(days=300), "%Y-%m-%d", "time (UTC)"),
    ],
)
def test_the_labels_of_time_are_as_exact_as_its_length_asks_for(
    length: timedelta, form: str, title: str
) -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    across = specification_of(timed([noon], [noon + length]), None, None, "q")["encoding"]["x"]
    assert (across["axis"], across["title"]) == ({"format": form}, title)


def test_rows_of_single_instants_are_points() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    starts = [noon, noon + timedelta(hours=1)]
    made = specification_of(timed(starts, [at + timedelta(microseconds=1) for at in starts]), "n", [], "q")
    assert made["mark"]["type"] == "circle"
    assert corners(made) == {"": [("2024-05-01T12:00:00+00:00", 0), ("2024-05-01T13:00:00+00:00", 1)]}
    longer = specification_of(timed(starts, [starts[0] + timedelta(microseconds=1), starts[1]]), "n", [], "q")
    assert longer["mark"]["type"] == "line"
    none = specification_of(timed([], []), "n", [], "q")
    assert none["mark"]["type"] == "line"
    assert none["data"]["values"] == []


@pytest.mark.parametrize(
    ("values", "zero"),
    [([4, 8], True), ([5, 8], False), ([-3, 9], True), ([-8, -5], False), ([-8, -4], True)],
)
def test_the_axis_shows_zero_where_that_leaves_room(values: list[int], zero: bool) -> None:
    history = pa.table({"n": values, "valid_from": [0, 5], "valid_to": [5, 9]})
    upright = specification_of(history, None, None, "q")["encoding"]["y"]
    assert upright["scale"] == {"zero": zero, "nice": 5}
    assert upright["axis"] == {"tickMinStep": 1}


def test_what_is_not_a_number_leaves_a_gap_and_many_groups_have_many_colours() -> None:
    values = [math.nan, math.inf, None, 2.5, *[1.0] * 7]
    keys = [f"k{place}" for place in range(11)]
    bounds = {"valid_from": [0] * 11, "valid_to": [5] * 11}
    made = specification_of(pa.table({"k": keys, "x": values, **bounds}), None, None, "q")
    assert corners(made)["k0"] == [(0, None), (5, None), (5, None)]
    assert corners(made)["k3"] == [(0, 2.5), (5, 2.5), (5, None)]
    assert made["encoding"]["color"]["scale"] == {"scheme": "tableau20"}
    assert "axis" not in made["encoding"]["y"]
    json.dumps(made, allow_nan=False)


def test_more_rows_than_a_browser_can_draw_are_refused() -> None:
    places = range(MOST_ROWS + 1)
    history = pa.table({"n": places, "valid_from": places, "valid_to": range(1, MOST_ROWS + 2)})
    with pytest.raises(UserError, match="at most 20,000 rows, and the answer has 20,001") as caught:
        specification_of(history, None, None, "q")
    assert "GRANULARITY" in str(caught.value.hint)
    assert len(specification_of(history.slice(1), None, None, "q")["data"]["values"]) == MOST_ROWS


def test_a_query_is_drawn_by_altair() -> None:
    altair = pytest.importorskip("altair")
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        query = db.query("SELECT SUM(v) AS total FROM s [RANGE 10]", name="totals")
        db.run()
        made = query.plot()
    assert isinstance(made, altair.Chart)
    drawn = made.to_dict()
    assert drawn["title"] == "totals"
    assert altair.SCHEMA_VERSION.partition(".")[0] in drawn["$schema"]
    (values,) = drawn["datasets"].values()
    assert corners({"data": {"values": values}}) == {"": [(1, 10), (2, 30), (11, 20), (12, 20), (12, None)]}


def test_without_altair_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        query = db.query("SELECT SUM(v) AS total FROM s [RANGE 10]")
        db.run()
        monkeypatch.setattr(importlib, "import_module", missing)
        with pytest.raises(UserError, match="altair is not installed") as caught:
            query.plot()
    assert "headrace[plot]" in str(caught.value.hint)


PAIRS = pa.table(
    {
        "first": ["a", "a", "b", "a"],
        "second": ["b", "c", "c", "b"],
        "r": [0.9, -0.5, 0.1, 0.8],
        "valid_from": [0, 0, 3, 3],
        "valid_to": pa.array([3, None, 5, 4], pa.int64()),
    }
)


def test_pairs_are_squares_at_an_instant() -> None:
    made = heat_of(PAIRS, None, None, "pairs")
    squares = {(one["group"], one["other"]): one["value"] for one in made["data"]["values"]}
    assert squares == {("a", "c"): -0.5, ("b", "c"): 0.1, ("a", "b"): 0.8}
    assert made["mark"]["type"] == "rect"
    assert made["encoding"]["color"]["scale"]["domain"] == [-0.8, 0.8]
    titles = [made["encoding"][name]["title"] for name in ("x", "y", "color")]
    assert titles == ["second", "first", "r"]


def test_groups_over_time_are_rows_of_colours() -> None:
    made = heat_of(PAIRS, "r", ["first"], "pairs")
    assert [(one["group"], one["at"], one["until"], one["value"]) for one in made["data"]["values"]] == [
        ("a", 0, 3, 0.9),
        ("a", 0, 5, -0.5),
        ("b", 3, 5, 0.1),
        ("a", 3, 4, 0.8),
    ]
    assert made["encoding"]["x2"] == {"field": "until"}


def test_numbers_beside_estimates_are_groups_of_colours() -> None:
    """Of an estimate its bounds are no groups, whether groups are numbers or texts."""
    for groups in ([7, 8, 7], ["a", "b", "a"]):
        history = pa.table(
            {
                "sensor": groups,
                "n": [1, 2, 3],
                "n_low": [0, 1, 2],
                "n_high": [2, 3, 4],
                "other": [5, 6, 7],
                "other_low": [5, 5, 7],
                "other_high": [5, 8, 7],
                "valid_from": [0, 0, 3],
                "valid_to": [3, 5, 4],
            }
        )
        for value, known in (("n", [1, 2, 3]), ("other", [5, 6, 7]), (None, [5, 6, 7])):
            made = heat_of(history, value, None, "sensors")
            assert made["encoding"]["y"]["title"] == "sensor"
            assert [one["value"] for one in made["data"]["values"]] == known


def test_columns_may_be_called_as_the_times_are() -> None:
    rows = [{"ts": 0, "k": "a", "from": 5.0, "to": "x"}, {"ts": 6, "k": "b", "from": 2.0, "to": "y"}]
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        query = db.query("SELECT k, `from` AS valid_from, `to` AS valid_to FROM s [RANGE 5]")
        db.run()
        made = heat_of(query.history(), None, ["k"], "named")
        assert [(one["at"], one["until"], one["value"]) for one in made["data"]["values"]] == [
            (0, 5, 5.0),
            (6, 11, 2.0),
        ]
        pairs = heat_of(query.history(), None, None, "named")
        assert [(one["group"], one["other"]) for one in pairs["data"]["values"]] == [("b", "y")]
        squares = query.plot(kind="heat", at=1).to_dict()
        assert squares["encoding"]["color"]["title"] == "valid_from"
        (drawn,) = next(iter(squares["datasets"].values()))
        assert drawn == {"group": "a", "other": "x", "value": 5.0}


@pytest.mark.parametrize(
    ("by", "rows", "message"),
    [
        (["first", "second", "r"], PAIRS, "a map of colours has one column of groups or two, not 3"),
        (["frist"], PAIRS, "there is no column frist"),
        (["first"], PAIRS.select(["first", "r"]), "groups over time have all instants"),
        (None, PAIRS.select(["first"]), "no column of numbers can be drawn"),
    ],
)
def test_what_is_no_map_of_colours(by: list[str] | None, rows: pa.Table, message: str) -> None:
    with pytest.raises(UserError) as caught:
        heat_of(rows, None, by, "pairs", at_instant=rows is not PAIRS)
    assert caught.value.message == message


def test_altair_takes_every_kind() -> None:
    """Maps of colours and small drawings are valid charts, with and without bounds beside a value."""
    rows = [{"ts": ts, "k": k, "n": ts} for ts in (0, 3, 6) for k in "ab"]
    with hr.connect(runner="inline") as db:
        db.stream("s", rows, timestamp="ts")
        query = db.query(
            "SELECT k, SUM(n) AS n, SUM(n) - 1 AS n_low, SUM(n) + 1 AS n_high FROM s [RANGE 2] GROUP BY k"
        )
        plain = db.query("SELECT a.k, b.k AS other, a.n FROM s [RANGE 2] a JOIN s [RANGE 2] b ON a.n = b.n")
        db.run()
        small = query.plot(kind="multiples").to_dict()
        assert (small["columns"], small["facet"]["title"]) == (3, "k")
        assert [part["mark"]["type"] for part in small["spec"]["layer"]] == ["area", "line"]
        assert "color" not in small["spec"]["layer"][0]["encoding"]
        assert plain.plot(kind="multiples").to_dict()["spec"]["mark"]["type"] == "line"
        squares = plain.plot("n", ["k", "other"], kind="heat", at=1).to_dict()
        assert len(next(iter(squares["datasets"].values()))) == 4
        assert query.plot("n", ["k"], kind="heat").to_dict()["mark"]["type"] == "rect"
        for wrong, hint in (({"kind": "pie"}, "'lines'"), ({"at": 1}, "heat")):
            with pytest.raises(UserError) as caught:
                query.plot(**wrong)
            assert caught.value.hint is not None
            assert hint in caught.value.hint
