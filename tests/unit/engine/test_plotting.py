"""An answer as a chart: the corners of its lines, its axes, and what cannot be drawn."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.plotting import specification_of
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


def test_a_query_is_drawn_by_altair(monkeypatch: pytest.MonkeyPatch) -> None:
    class Altair:
        class Chart:
            from_dict = staticmethod(lambda specification: specification)

    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        query = db.query("SELECT SUM(v) AS total FROM s [RANGE 10]", name="totals")
        db.run()
        with monkeypatch.context() as patched:
            patched.setattr(importlib, "import_module", lambda name: Altair)
            made = query.plot()
        assert corners(made) == {"": [(1, 10), (2, 30), (11, 20), (12, 20), (12, None)]}
        assert made["title"] == "totals"
