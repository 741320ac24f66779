r"""r'\d+', in which a backslash is a character like others, and constants at the head of TIMESTAMP BY."""

from __future__ import annotations

import pytest

import headrace as hr


@pytest.mark.parametrize(
    ("raw", "written"),
    [(r"r'^\s(\S+)'", r"'^\\s(\\S+)'"), (r"R'\\'", r"'\\\\'"), ("r''", "''"), (r"r'a\n'", r"'a\\n'")],
)
def test_a_raw_text_is_the_text_with_its_backslashes_doubled(raw: str, written: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v STRING) FROM push TIMESTAMP BY ts")
        query = db.query(f"SELECT {raw} AS a, {raw} = {written} AS same, LENGTH({raw}) AS n FROM s")
        db.start()
        db.push("s", [{"ts": 1, "v": "x"}, {"ts": 2, "v": "y"}])
        (row, *_) = query.stream().to_pylist()
        assert row["same"]
        assert len(row["a"]) == row["n"]


@pytest.mark.parametrize(
    ("timed", "instant"),
    [
        ("TIMESTAMP '2024-01-01' + i * INTERVAL '1' SECOND AS ts", "2024-01-01T00:00:03+00:00"),
        (
            "TIMESTAMP '2024-01-01' + i * CAST(1 AS BIGINT) * INTERVAL '1' SECOND AS ts",
            "2024-01-01T00:00:03+00:00",
        ),
        ("5 + i AS ts DISORDER 2", 8),
        ("timestamp DISORDER 2", 7),
    ],
)
def test_what_rows_are_timed_by_may_begin_with_a_constant(timed: str, instant: object) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s (i BIGINT, timestamp BIGINT) FROM push TIMESTAMP BY {timed}")
        query = db.query("SELECT * FROM s")
        db.start()
        db.push("s", [{"i": 3, "timestamp": 7}, {"i": 30, "timestamp": 70}])
        db.stop()
        (row, *_) = query.stream().to_pylist()
        found = row.get("ts", row["timestamp"])
        assert (found if isinstance(found, int) else found.isoformat()) == instant


def test_options_may_be_called_as_words_of_the_language(tmp_path: object) -> None:
    with hr.connect(runner="inline") as db:
        text = "CREATE STREAM s (i BIGINT) FROM csv OPTIONS (path 'x.csv', null 'NA') TIMESTAMP BY i"
        with pytest.raises(hr.HeadraceError, match="no such file"):
            db.execute(text)
