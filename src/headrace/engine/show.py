"""SHOW: what a database knows, as tables of text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final, assert_never

import pyarrow as pa

from headrace.algebra.properties import has_unbounded_state, sources_of
from headrace.engine.definitions import Definitions
from headrace.expressions.aggregates import AGGREGATES
from headrace.expressions.functions import FUNCTIONS
from headrace.expressions.user import UserFunction
from headrace.language.catalog import DerivedStream, Functions, StreamInfo
from headrace.language.statements import Shown
from headrace.runtime.writing.tables import write_table
from headrace.schema import STRING, Schema, sql_type
from headrace.time import TimeDomain, format_length

Rows = list[tuple[str, ...]]

_STREAMS: Final = ("name", "reads", "timed_by", "disorder", "columns")
_QUERIES: Final = ("name", "reads", "timed_by", "state", "columns")
_FUNCTIONS: Final = ("name", "kind", "defined", "arguments", "returns")


def show(what: Shown, definitions: Definitions, functions: Functions) -> str:
    """The answer to a SHOW statement, as text; see `listing`."""
    text = io.StringIO()
    write_table(listing(what, definitions, functions), "table", text)
    return text.getvalue().rstrip("\n")


def listing(what: Shown, definitions: Definitions, functions: Functions) -> pa.Table:
    """What a database knows of one kind, in the order in which it was defined; functions by name.

    Args:
        what: what to list.
        definitions: the streams and queries.
        functions: the users' functions that whoever asks may call.
    """
    match what:
        case Shown.STREAMS:
            return _table(_STREAMS, _streams(definitions))
        case Shown.QUERIES:
            return _table(_QUERIES, _queries(definitions))
        case Shown.FUNCTIONS:
            return _table(_FUNCTIONS, _functions(functions))
        case Shown.DIALECT:
            return _table(("dialect",), [(definitions.catalog.defaults.value,)])
        case _:
            assert_never(what)


def _streams(definitions: Definitions) -> Rows:
    rows: Rows = []
    for entry in definitions.catalog.entries.values():
        match entry:
            case StreamInfo(name=name, schema=schema, timestamp=timestamp, domain=domain):
                disorder = format_length(definitions.inputs[name].stream.disorder, domain)
                rows.append((name, "its source", timestamp, disorder, _columns(schema)))
            case DerivedStream(name=name, plan=plan):
                rows.append((name, definitions.read_by(name), "a query", "", _columns(plan.schema)))
            case _:
                assert_never(entry)
    return rows


def _queries(definitions: Definitions) -> Rows:
    rows: Rows = []
    for query in definitions.queries.values():
        reads = ", ".join(dict.fromkeys(source.name for source in sources_of(query.plan)))
        timed = "TIMESTAMP" if query.plan.domain is TimeDomain.TIMESTAMP else "BIGINT"
        state = "grows without bound" if has_unbounded_state(definitions.plans[query.name]) else "bounded"
        rows.append((query.name, reads, timed, state, _columns(query.plan.schema)))
    return rows


def _functions(functions: Functions) -> Rows:
    rows: Rows = [(name, "function", "built in", "", "") for name in FUNCTIONS]
    rows += [(name, "aggregate", "built in", "", "") for name in AGGREGATES]
    for user in functions.values():
        kind = "function" if isinstance(user, UserFunction) else "aggregate"
        arguments = ", ".join(map(sql_type, user.arguments))
        rows.append((user.name, kind, "in Python", arguments, sql_type(user.returns)))
    return sorted(rows, key=lambda row: row[0].upper())


def _columns(schema: Schema) -> str:
    return str(schema).removeprefix("(").removesuffix(")")


def _table(names: Sequence[str], rows: Rows) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], STRING) for place in range(len(names))]
    return pa.table(columns, names=list(names))
