"""Histories as logs of insertions and deletions, and back (thesis, section 14.1)."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import from_rows
from headrace.history import canonical
from headrace.reference.contents import Element, content_at, payload
from headrace.schema import Schema
from headrace.time import ALWAYS, INFINITY
from property.strategies import schemas, signed_histories

ROWS = schemas().flatmap(lambda schema: st.tuples(st.just(schema), signed_histories(schema)))


def table_of(schema: Schema, elements: list[Element]) -> pa.Table:
    """The canonical history, in the form of `Query.history`."""
    batch = canonical(from_rows(schema, elements))
    ends = [pa.array(ends, mask=(ends == ALWAYS) | (ends == INFINITY)) for ends in (batch.ts, batch.te)]
    names = [*schema.names, "valid_from", "valid_to"]
    return pa.table([*batch.payload.columns, *ends], names=names)


@settings(max_examples=25)
@given(ROWS, st.randoms(use_true_random=False))
def test_there_and_back_again(drawn: tuple[Schema, list[Element]], random: object) -> None:
    schema, elements = drawn
    history = table_of(schema, elements)
    log = hr.log_of(history)
    shuffled = list(range(len(log)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = hr.history_of(log.take(pa.array(shuffled, pa.int64())))
    assert again.schema.types == history.schema.types
    for left, right in zip(again.columns, history.columns, strict=True):
        assert list(map(repr, left.to_pylist())) == list(map(repr, right.to_pylist()))


@settings(max_examples=25)
@given(ROWS)
def test_applying_a_log_up_to_an_instant_gives_the_content(drawn: tuple[Schema, list[Element]]) -> None:
    schema, elements = drawn
    log = hr.log_of(table_of(schema, elements))
    rows = log.select(range(len(schema))).combine_chunks().to_batches()
    known = [] if not rows else _payloads(rows[0])
    found: Counter[tuple[object, ...]] = Counter()
    changes = list(zip(known, *(column.to_pylist() for column in log.columns[-2:]), strict=True))
    for place, (row, instant, operation) in enumerate(changes):
        found[row] += 1 if operation == "insert" else -1
        assert found[row] >= 0
        if place + 1 == len(changes) or changes[place + 1][1] != instant:
            assert +found == content_at(elements, instant)


def _payloads(rows: pa.RecordBatch) -> list[tuple[object, ...]]:
    return [payload(row.values()) for row in rows.to_pylist()]
