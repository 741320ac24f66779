"""The notebook of the first hour: it runs from top to bottom, and its tables and charts are right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from notebooks import after, chart_of, has_no_outputs, run_notebook, table_of

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_hour.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The code cells, with what they put out."""
    return run_notebook(NOTEBOOK, tmp_path_factory.mktemp("ipython"))


def lines_of(output: Any) -> dict[str, list[tuple[str, float | None]]]:
    """The corners of a chart's lines by group, with times of the day."""
    specification = chart_of(output)
    assert specification["mark"] == {"type": "line", "interpolate": "step-after"}
    (points,) = specification["datasets"].values()
    found: dict[str, list[tuple[str, float | None]]] = {}
    for point in points:
        assert point["at"].startswith("2024-05-01T")
        assert point["at"].endswith("+00:00")
        found.setdefault(point["group"], []).append((point["at"][11:16], point["value"]))
    return found


def test_it_is_stored_without_outputs() -> None:
    assert has_no_outputs(NOTEBOOK)


def test_its_tables_are_right(executed: Any) -> None:
    day = "2024-05-01T09:{}:00Z"
    expected = [
        ("kitchen", "19.0", "00", "06"),
        ("attic", "24.0", "02", "12"),
        ("kitchen", "20.0", "06", "10"),
        ("cellar", "14.5", "10", "20"),
        ("kitchen", "21.0", "10", "16"),
        ("attic", "26.0", "14", "24"),
        ("kitchen", "22.0", "21", "31"),
        ("attic", "27.0", "25", "35"),
    ]
    (answer,) = [cell for cell in executed if cell.source == "warmth"]
    assert table_of(answer.outputs[-1]) == [
        ["room", "mean", "valid_from", "valid_to"],
        *([room, mean, day.format(start), day.format(end)] for room, mean, start, end in expected),
    ]
    # An Arrow table, too.
    snapshot = table_of(after(executed, "warmth.snapshot"))
    assert snapshot == [["room", "mean"], ["cellar", "14.5"], ["kitchen", "21.0"]]
    assert table_of(after(executed, "print(pd.Timestamp(hottest.heartbeat")) == [["hottest"], ["24.0"]]
    assert table_of(after(executed, "live.queries"))[1:] == [
        ["hottest", "(hottest DOUBLE)", "final below 2024-05-01T09:38:00Z"],
        ["cellar", "(celsius DOUBLE)", "final below 2024-05-01T09:38:00Z"],
    ]
    assert "8 rows in" in after(executed, "cellar =")["data"]["text/html"]


def test_its_texts_are_right(executed: Any) -> None:
    assert "reading has no window: what is remembered of it grows" in after(executed, "lonely =").text
    assert "there is no column celcius (hint: did you mean celsius?)" in after(executed, "try:").text
    printing = next(cell for cell in executed if cell.source.startswith("print(pd"))
    # What is printed may come in several parts.
    printed = "".join(output.text for output in printing.outputs if output.output_type == "stream")
    assert printed == "2024-05-01 09:08:00+00:00\n"
    assert "TimeWindow RANGE 10 MINUTES" in after(executed, "warmth.explain")["data"]["text/html"]


def test_its_charts_are_right(executed: Any) -> None:
    assert lines_of(after(executed, "warmth.plot()")) == {
        "attic": [
            *[("09:02", 24), ("09:12", 24), ("09:12", None)],
            *[("09:14", 26), ("09:24", 26), ("09:24", None)],
            *[("09:25", 27), ("09:35", 27), ("09:35", None)],
        ],
        "cellar": [("09:10", 14.5), ("09:20", 14.5), ("09:20", None)],
        "kitchen": [
            *[("09:00", 19), ("09:06", 20), ("09:10", 21), ("09:16", 21), ("09:16", None)],
            *[("09:21", 22), ("09:31", 22), ("09:31", None)],
        ],
    }
    corners = [("09:00", 19), ("09:02", 24), ("09:12", 21), ("09:13", 28.5), ("09:23", 26), ("09:24", 26)]
    assert lines_of(after(executed, "more = ")) == {"": [*corners, ("09:24", None)]}
