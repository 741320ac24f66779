"""Aggregates that are others with an order, a filter or a function after them, beside DuckDB's."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError

ROWS = 200
CHOICES = random.Random(7)
KEYS = [CHOICES.choice("abc") for _ in range(ROWS)]
TABLE = pa.table(
    {
        "ts": pa.array(range(ROWS), pa.int64()),
        "k": KEYS,
        # Each value comes once, for among equal ones either may be chosen.
        "v": [
            None if place % 7 == 0 else value for place, value in enumerate(CHOICES.sample(range(999), ROWS))
        ],
        "w": [None if place % 5 == 0 else f"w{place % 11}" for place in range(ROWS)],
    }
)

SAME = {
    "MAX_BY(w, v)": "arg_max_null(w, v)",
    "MIN_BY(w, v)": "arg_min_null(w, v)",
    "ARG_MAX(k, v) FILTER (WHERE v < 500)": "arg_max_null(k, v) FILTER (WHERE v < 500)",
    "STRING_AGG(w, ', ' ORDER BY ts)": "string_agg(w, ', ' ORDER BY ts)",
    "STRING_AGG(DISTINCT w, '')": "string_agg(DISTINCT w, '' ORDER BY w)",
    "LISTAGG(w, ';') WITHIN GROUP (ORDER BY ts DESC)": "string_agg(w, ';' ORDER BY ts DESC)",
    "GROUP_CONCAT(v ORDER BY v)": "string_agg(v, ',' ORDER BY v)",
    "STRING_AGG(w, '-') FILTER (WHERE v > 9999)": "string_agg(w, '-') FILTER (WHERE v > 9999)",
    "SIZE(ARRAY_AGG(w))": "count(w)",
    "ARRAY_JOIN(ARRAY_AGG(w ORDER BY ts), '+')": "coalesce(string_agg(w, '+' ORDER BY ts), '')",
}


def test_they_are_those_of_duckdb() -> None:
    with hr.connect(runner="inline") as db, duckdb.connect() as peer:
        peer.register("rows", TABLE)
        db.stream("e", TABLE, timestamp="ts")
        items = ", ".join(f"{ours} AS x{place}" for place, ours in enumerate(SAME))
        query = db.query(f"SELECT k, {items} FROM e [RANGE 60] GROUP BY k")
        db.run()
        theirs = ", ".join(SAME.values())
        for at in (0, 30, 59, 60, 61, 150, ROWS - 1):
            found = sorted(tuple(row.values()) for row in query.snapshot(at).to_pylist())
            wanted = f"SELECT k, {theirs} FROM rows WHERE ts > {at} - 60 AND ts <= {at} GROUP BY k"
            assert found == sorted(peer.sql(wanted).fetchall()), at


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAX_BY(w)", "MAX_BY takes 2 arguments, not 1"),
        ("MAX_BY(DISTINCT w, v)", "MAX_BY takes no DISTINCT or ORDER BY"),
        ("STRING_AGG(w)", "STRING_AGG takes a value and a separator"),
        ("STRING_AGG(w, k)", "the separator of STRING_AGG must be a string constant"),
        ("STRING_AGG(*)", "STRING_AGG takes a value and a separator"),
        ("SIZE(w)", "SIZE takes an ARRAY, not STRING"),
        ("ARRAY_JOIN(ARRAY_AGG(v), ',')", "ARRAY_JOIN takes an ARRAY of STRINGs, not ARRAY<BIGINT>"),
    ],
)
def test_wrong_calls(text: str, message: str) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("e", TABLE, timestamp="ts")
        with pytest.raises(LanguageError, match=message):
            db.query(f"SELECT {text} AS x FROM e [RANGE 3]")
