"""What is no text, in a column of STRINGs: its JSON, the same whichever way rows come in."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import headrace as hr
from headrace.runtime.intake.given_rows import table_of
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.server.bodies import table_of as table_of_body
from headrace.server.limits import RequestLimits
from how_many import examples
from unit.server.serving_for_tests import running
from waiting import wait_for

COLUMNS = "ts BIGINT, s STRING, n STRUCT<t STRING>, l ARRAY<STRING>, m MAP<STRING, STRING>"
NAMES = st.sampled_from(["a", "b", "ü", 'q"'])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
PLAIN = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXTS | st.sampled_from([1.5, -0.25, 1e-9])
VALUES = st.recursive(
    PLAIN, lambda part: st.lists(part, max_size=2) | st.dictionaries(NAMES, part, max_size=2)
)
ROWS = st.fixed_dictionaries(
    {
        "ts": st.just(1),
        "s": VALUES,
        "n": st.none() | st.fixed_dictionaries({"t": VALUES}),
        "l": st.none() | st.lists(VALUES, max_size=2),
        "m": st.none() | st.dictionaries(NAMES, VALUES, max_size=2),
    }
)


def schema_of() -> Schema:
    """The columns."""
    import pyarrow as pa

    types = [BIGINT, STRING, pa.struct([("t", STRING)]), pa.list_(STRING), pa.map_(STRING, STRING)]
    return Schema(tuple(Field(name, dtype) for name, dtype in zip(("ts", *"snlm"), types, strict=True)))


@given(row=ROWS)
@examples(30, 60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_that_are_pushed_are_what_a_body_of_json_is(row: dict[str, Any]) -> None:
    schema = schema_of()
    body = json.dumps(row, ensure_ascii=False).encode()
    read = table_of_body(body, "application/x-ndjson", "s", schema, 2**20)
    assert table_of(row, schema, "s").to_pylist() == read.to_pylist()


def _says_one(query: hr.Query) -> bool:
    return bool(query.changes().num_rows == 1)


def test_every_way_in(tmp_path: Path) -> None:
    row = {"ts": 1, "s": {"a": 1.5, "b": [None, True]}, "n": {"t": 5}, "l": ["x", {}], "m": {"k": [1]}}
    wanted = {"s": '{"a":1.5,"b":[null,true]}', "n": {"t": "5"}, "l": ["x", "{}"], "m": {"k": "[1]"}}
    (tmp_path / "s.json").write_text(json.dumps(row))
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM f ({COLUMNS}) FROM json OPTIONS (path '{tmp_path}/s.json') TIMESTAMP BY ts;"
            f"CREATE STREAM p ({COLUMNS}) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY of_f CONSISTENCY MIDDLE AS SELECT s, n, l, m FROM f;"
            "CREATE QUERY of_p CONSISTENCY MIDDLE AS SELECT s, n, l, m FROM p"
        )
        db.start()
        db.push("p", row)
        for name in ("of_f", "of_p"):
            query = db.queries[name]
            wait_for(partial(_says_one, query))
            (found,) = query.changes().select(list(wanted)).to_pylist()
            assert {**found, "m": dict(found["m"])} == wanted, name
    with running(tmp_path, RequestLimits()) as url, httpx.Client(base_url=url, timeout=120) as client:
        text = f"CREATE STREAM p ({COLUMNS}) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT s FROM p"
        assert client.post("/statements", json={"text": text}).status_code == 200
        assert client.post("/streams/p/rows", json=row).status_code == 200


def test_what_has_no_json_is_refused() -> None:
    with pytest.raises(hr.UserError, match="row 1: s is not a STRING"):
        table_of({"s": [object()]}, Schema((Field("s", STRING),)), "s")
