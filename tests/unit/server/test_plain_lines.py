"""Small bodies of JSON lines are read at once, and as files of the same lines are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.tables import read_rows
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema
from headrace.server.bodies import plain_lines
from how_many import examples

SCHEMA = Schema((Field("a", BIGINT), Field("b", STRING), Field("t", TIMESTAMP), Field("x", DOUBLE)))
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=4),
    st.sampled_from(["2024-05-01T12:00:00Z", "7", [], {}, [1], {"c": 1}]),
)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "t", "x", "A", "c"]), VALUES)
FIRST = st.fixed_dictionaries(dict.fromkeys(SCHEMA.names, VALUES))


@examples(17)
@given(FIRST, st.lists(OBJECTS, max_size=3), st.sampled_from(["\n", "\r\n", "\n\n"]), st.booleans())
def test_they_are_what_a_file_has(
    tmp_path_factory: pytest.TempPathFactory,
    first: dict[str, object],
    others: list[dict[str, object]],
    between: str,
    ended: bool,
) -> None:
    text = between.join(json.dumps(one) for one in (first, *others)) + ("\n" if ended else "")
    body = text.encode()
    folder = tmp_path_factory.mktemp("body")
    (folder / "body").write_bytes(body)
    source = open_source("json", {"path": "body"}, SCHEMA, None, "s", folder)
    rows, rejected = read_rows(source, SCHEMA)
    found = plain_lines(body, SCHEMA)
    assert (found is None) == bool(rejected)
    assert found is None or found.to_batches() == [rows]


@pytest.mark.parametrize(
    "body",
    [
        b'[{"a": 1, "b": "x", "t": null, "x": 1}]',
        b'{\n"a": 1, "b": "x", "t": null, "x": 1}',
        b'\xef\xbb\xbf{"a": 1, "b": "x", "t": null, "x": 1}',
        b'{"A": 1, "b": "x", "t": null, "x": 1}',
        b'{"a": 1, "b": "\xff", "t": null, "x": 1}',
        b"{" * 5_000,
        b'{"a": 1, "b": "x", "t": null, "x": 1}\n' * 50_000,
    ],
)
def test_others_are_left_to_those_who_read_files(body: bytes) -> None:
    assert plain_lines(body, SCHEMA) is None
