"""The tables that a question names, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, assert_never

import pyarrow as pa

from headrace.engine.asking.question import QuestionLimits, TableName, answer
from headrace.engine.asking.references import AskedKind, BeforeNow, Reference, SpanEnd, resolved
from headrace.engine.asking.values import with_placeholders
from headrace.engine.inputs.times import span_of
from headrace.engine.views.readable import Readable
from headrace.engine.views.span_ends import Now
from headrace.errors import UserError
from headrace.language.named_values import ParameterValue
from headrace.runtime.driver.endless.withdrawal import check_wanted


class AskedTables(Protocol):
    """Where queries and streams are that can be asked about."""

    def __getitem__(self, name: str, /) -> Readable:
        """The query of a name."""
        ...

    def dead_letters(self, stream: str | None = None) -> pa.Table:
        """The dead letters of all streams, or of one with its columns."""
        ...

    def rows(self, stream: str) -> pa.Table:
        """The rows of a stream that are kept."""
        ...


def ask(
    kept: AskedTables,
    text: str,
    limits: QuestionLimits,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> pa.Table:
    """The answer of a question over what is kept.

    Args:
        kept: what it can read.
        text: a SELECT in DuckDB's SQL that names `HISTORY OF q` and the like where a table can be.
        limits: what it may use.
        parameters: the values of `:name` in the question, by name.

    Raises:
        UserError: as `answer` does, or what is named cannot be read.
    """
    values = parameters or {}
    question, references = resolved(with_placeholders(text, values))
    tables: dict[TableName, pa.Table] = {}
    for reference in references:
        key = reference.schema, reference.table.lower()
        if key not in tables:
            check_wanted()
            tables[key] = _table(kept, reference)
    return answer(question, tables, limits, values)


def _table(kept: AskedTables, reference: Reference) -> pa.Table:
    try:
        if reference.kind is AskedKind.DEAD_LETTERS:
            return kept.dead_letters(reference.name)
        if reference.kind is AskedKind.ROWS and reference.name is not None:
            return kept.rows(reference.name)
        assert reference.name is not None, "only dead letters are asked for without a name"
        return _view(kept[reference.name], reference.kind)(reference)
    except UserError as error:
        if error.position is not None:
            raise
        raise type(error)(error.message, position=reference.position, hint=error.hint) from error


def _view(query: Readable, kind: AskedKind) -> Callable[[Reference], pa.Table]:
    match kind:
        case AskedKind.HISTORY:
            return lambda reference: (
                query.history(reference.as_of)
                if reference.between is None
                else query.between(*_ends(query, reference.between), reference.as_of)
            )
        case AskedKind.SNAPSHOT:
            return lambda reference: (
                query.latest(reference.as_of)
                if reference.between is None
                else query.within(*_ends(query, reference.between), reference.as_of)
            )
        case AskedKind.CHANGES:
            return lambda reference: query.changes(reference.as_of)
        case AskedKind.STREAM:
            return lambda reference: query.stream(reference.as_of)
        case AskedKind.EPOCHS:
            return lambda _: query.epochs()
        case AskedKind.DEAD_LETTERS | AskedKind.ROWS:
            raise AssertionError("rows and dead letters are of a stream")
        case _:
            assert_never(kind)


def _ends(query: Readable, between: tuple[SpanEnd, SpanEnd]) -> tuple[object, object]:
    """The ends of a span as a query takes them."""
    begin, end = (_end(query, one) for one in between)
    return begin, end


def _end(query: Readable, end: SpanEnd) -> object:
    if not isinstance(end, BeforeNow):
        return end
    return Now() if end.length is None else Now(span_of(end.length, query.domain, "NOW -"))
