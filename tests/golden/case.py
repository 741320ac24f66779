"""Golden files: a query, its plans, steps of input, and the answer after every step.

    # What the case shows.
    == stream reading (k STRING, v BIGINT, ts BIGINT) TIMESTAMP BY ts DISORDER 2
    a, 1, 1
    --
    b, NULL, 4
    == query
    SELECT k, COUNT(*) AS n FROM reading [RANGE 5] GROUP BY k
    == plan
    == optimized
    == after 1
    == after 2

A relation has rows only, `== relation sensor (id BIGINT, room STRING) VALID FROM a TO b`.

Every `--` ends a step; all streams of a file have equally many. The answer after a step is the history below
the query's heartbeat; after the last step all is final. `make golden` writes the last sections again: plans
from the binder and the optimizer, answers from the reference evaluator, never from the operators. So the
plans are snapshots of our own output, which prove nothing but show what a change does to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from headrace.algebra.events import Events
from headrace.algebra.explain import explain
from headrace.algebra.nodes import Plan
from headrace.language.binding.binder import bind, derive
from headrace.language.catalog import Catalog, RelationInfo, StreamInfo, describe_relation, describe_stream
from headrace.language.parsing.parser import parse
from headrace.language.statements.statements import CreateStreamAs, Select, SetDialect
from headrace.language.statements.streams import CreateRelation, CreateStream
from headrace.optimizer import optimize
from headrace.reference.contents import Element, Stream
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Schema
from headrace.time import ALWAYS, BEGINNING, INFINITY, TimeDomain, format_instant

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class StreamSteps:
    """A stream of a case: its entry in the catalog, its disorder, and its rows per step."""

    info: StreamInfo
    disorder: int
    steps: tuple[tuple[tuple[object, ...], ...], ...]

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def schema(self) -> Schema:
        return self.info.schema

    @property
    def timestamp(self) -> str:
        return self.info.timestamp

    def stream(self, steps: int) -> Stream:
        """The elements of its rows of the first steps."""
        rows = [row for part in self.steps[:steps] for row in part]
        return Stream(self.schema.names, [self._element(row) for row in rows])

    def _element(self, row: tuple[object, ...]) -> Element:
        start, changes = self.time_of(row), self.info.changes
        if not isinstance(changes, Events):
            return row, start, start + 1, 1
        columns = dict(zip(self.schema.names, row, strict=True))
        end = columns[changes.ends] if changes.ends is not None else None
        assert end is None or isinstance(end, int), "a stream that is timed by integers"
        until = INFINITY if end is None else end
        weight = 1 if changes.change is None else columns[changes.change]
        assert isinstance(weight, int)
        return row, start, until if changes.lasting else start + 1, weight

    def table(self) -> pa.Table:
        return _table(self.schema, [row for step in self.steps for row in step])

    def time_of(self, row: tuple[object, ...]) -> int:
        index = self.schema.find(self.timestamp)
        assert index is not None
        found = _instant(row[index], self.schema[index].type)
        assert found is not None
        return found


@dataclass(frozen=True)
class RelationRows:
    """A relation of a case: its entry in the catalog and its rows."""

    info: RelationInfo
    rows: tuple[tuple[object, ...], ...]

    def table(self) -> pa.Table:
        return _table(self.info.schema, self.rows)

    def stream(self) -> Stream:
        """The elements of its rows."""
        valid = self.info.valid or ()
        places = [self.info.schema.names.index(name) for name in valid]
        elements = []
        for row in self.rows:
            bounds = [_instant(row[place], self.info.schema[place].type) for place in places]
            begin, end = bounds or [None, None]
            elements.append((row, ALWAYS if begin is None else begin, INFINITY if end is None else end, 1))
        return Stream(self.info.schema.names, elements)


@dataclass(frozen=True)
class Case:
    """A golden file, read."""

    path: Path
    comment: str
    streams: tuple[StreamSteps, ...]
    relations: tuple[RelationRows, ...]
    query: str
    expected: dict[str, str]
    heads: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.streams[0].steps)

    @cached_property
    def catalog(self) -> Catalog:
        """The streams of the case, without those that the query's text defines."""
        catalog = Catalog()
        for stream in self.streams:
            catalog = catalog.define(stream.info)
        for relation in self.relations:
            catalog = catalog.define(relation.info)
        return catalog

    @cached_property
    def plan(self) -> Plan:
        catalog = self.catalog
        *others, last = parse(self.query)
        for statement in others:
            if isinstance(statement, SetDialect):
                catalog = replace(catalog, defaults=statement.defaults)
                continue
            assert isinstance(statement, CreateStreamAs)
            catalog = catalog.define(derive(statement.name.text, statement.query, catalog))
        assert isinstance(last, Select)
        return bind(last.query, catalog)

    def actual(self, answer: Callable[[int], list[tuple[object, ...]]]) -> dict[str, str]:
        """The sections as they come out, with answers from `answer(step)`."""
        sections = {"plan": explain(self.plan), "optimized": explain(optimize(self.plan))}
        for step in range(1, self.steps + 1):
            sections[f"after {step}"] = show(self.plan, answer(step))
        return sections

    def heartbeats(self, step: int) -> dict[str, int]:
        """The streams' heartbeats after a step, by the definition of bounded disorder."""
        result = {}
        for stream in self.streams:
            times = [stream.time_of(row) for rows in stream.steps[:step] for row in rows]
            ended = not any(stream.steps[step:])
            result[stream.name] = (
                INFINITY if ended else max(times, default=BEGINNING + stream.disorder) - stream.disorder
            )
        return result | {relation.info.name: INFINITY for relation in self.relations}

    def write(self, sections: dict[str, str]) -> None:
        """Write the file again with other sections."""
        parts = [self.comment, *self.heads]
        parts += [f"== {name}\n{text}".rstrip() for name, text in sections.items()]
        self.path.write_text("\n".join(parts) + "\n")


def load(path: Path) -> Case:
    """Read a golden file."""
    comment, *sections = path.read_text().split("\n== ")
    streams, relations, heads, expected, query = [], [], [], {}, ""
    for section in sections:
        title, _, body = section.partition("\n")
        if title.startswith("stream "):
            streams.append(_stream(title, body))
            heads.append(f"== {title}\n{body.rstrip()}")
        elif title.startswith("relation "):
            relations.append(_relation(title, body))
            heads.append(f"== {title}\n{body.rstrip()}")
        elif title == "query":
            query = body.strip()
            heads.append(f"== query\n{query}")
        else:
            expected[title] = body.rstrip()
    return Case(path, comment.rstrip(), tuple(streams), tuple(relations), query, expected, tuple(heads))


def show(plan: Plan, rows: list[tuple[object, ...]]) -> str:
    """History rows `(payload..., valid_from, valid_to)` as the golden files print them."""
    domain = plan.domain
    lines = [" | ".join([*plan.schema.names, "valid_from", "valid_to"])]
    for *payload, start, end in rows:
        begun = "always" if start == ALWAYS else format_instant(int(str(start)), domain)
        times = [begun, format_instant(int(str(end)), domain)]
        lines.append(" | ".join([*map(_text, payload), *times]).rstrip())
    return "\n".join(lines)


def _stream(title: str, body: str) -> StreamSteps:
    statement = _declaration(title.removeprefix("stream "))
    assert statement.columns is not None
    assert isinstance(statement.timestamp, str)
    types = [field.type for field in statement.columns]
    steps: list[tuple[tuple[object, ...], ...]] = []
    for part in f"\n{body.strip()}\n".split("\n--\n"):
        lines = [line for line in part.strip().split("\n") if line.strip()]
        steps.append(tuple(_row(line, types) for line in lines))
    declared = statement.time.disorder
    disorder = 0 if declared is None else declared.length
    return StreamSteps(describe_stream(statement, statement.columns), disorder, tuple(steps))


def _relation(title: str, body: str) -> RelationRows:
    head, valid, period = title.removeprefix("relation ").partition(" VALID FROM ")
    text = f"CREATE RELATION {head} FROM csv OPTIONS (path 'none'){valid}{period}"
    (statement,) = parse(text)
    assert isinstance(statement, CreateRelation)
    assert statement.columns is not None
    types = [field.type for field in statement.columns]
    rows = tuple(_row(line, types) for line in body.strip().split("\n"))
    return RelationRows(describe_relation(statement, statement.columns), rows)


def _table(schema: Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow())


def _instant(value: object, dtype: pa.DataType) -> int | None:
    return None if value is None else int(pa.scalar(value, dtype).cast(pa.int64()).as_py())


def _declaration(text: str) -> CreateStream:
    head, clause, tail = re.split(r" (CHANGES BY|VALID FROM|TIMESTAMP BY) ", text, maxsplit=1)
    statement = parse(f"CREATE STREAM {head} FROM csv OPTIONS (path 'none') {clause} {tail}")[0]
    assert isinstance(statement, CreateStream)
    return statement


def _row(line: str, types: list[pa.DataType]) -> tuple[object, ...]:
    return tuple(_value(text.strip(), dtype) for text, dtype in zip(line.split(","), types, strict=True))


def _value(text: str, dtype: pa.DataType) -> object:
    if text == "NULL":
        return None
    if pa.types.is_decimal(dtype):
        return Decimal(text)
    readers: dict[pa.DataType, Callable[[str], object]] = {
        BIGINT: int,
        DOUBLE: float,
        STRING: str,
        BOOLEAN: lambda value: value == "true",
        DATE: date.fromisoformat,
        TIMESTAMP: lambda value: datetime.fromisoformat(value).replace(tzinfo=UTC),
    }
    return readers[dtype](text)


def _text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            micros = int((value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
            return format_instant(micros, TimeDomain.TIMESTAMP)
        case float():
            return f"{value:.12g}"
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
        case _:
            return str(value)
