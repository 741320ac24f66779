"""`CREATE STREAM ... FROM format`: the columns, options, timestamp and disorder of a source."""

from __future__ import annotations

from typing import Final

from sqlglot.tokens import TokenType

from headrace.errors import LanguageError, PlanError, Position
from headrace.language.catalog import describe_stream
from headrace.language.parsing.clauses.window_clauses import parse_duration_at
from headrace.language.parsing.statements.column_types import parse_type
from headrace.language.parsing.statements.corrections import Watermark, parse_events, parse_key
from headrace.language.parsing.statements.debezium import (
    accept_records,
    columns_with_records,
    parse_record_columns,
)
from headrace.language.parsing.statements.time_clauses import parse_altered_clauses, parse_time_clauses
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.statements.formats import FILE_FORMATS, FORMATS, format_of_ending
from headrace.language.statements.secret import SecretName
from headrace.language.statements.streams import (
    NOTHING_SAID,
    SECRET_OPTIONS,
    AddColumns,
    AlterStream,
    ComputedColumn,
    CreateStream,
    TimeClauses,
)
from headrace.language.syntax import Name
from headrace.language.unsupported import FOREIGN_FORMATS
from headrace.schema import BIGINT, Field, Schema
from headrace.suggestions import did_you_mean
from headrace.time import Duration

UNTYPED_FORMATS: Final = ("push",)
"""Formats that do not describe their columns, so CREATE STREAM must; csv and json show them in the data."""

_WATERMARK: Final = (
    "write WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, or TIMESTAMP BY ts DISORDER 5 SECONDS after FROM"
)
_COMPUTED: Final = "compute them in CREATE STREAM other AS SELECT *, ... FROM name"
_WRITTEN = "write CREATE STREAM name (columns) FROM format OPTIONS (path '...') TIMESTAMP BY column"


def parse_create_stream(cursor: Cursor, name: Name, position: Position) -> CreateStream:
    """Read what follows `CREATE STREAM name` where it is not `AS`.

    Raises:
        LanguageError: the text is malformed, or the parts do not fit each other.
    """
    begin = cursor.position
    columns, watermark, computed = parse_columns(cursor) if cursor.at("(") else (None, None, ())
    key = parse_key(cursor)
    form, options = parse_input(cursor, columns, "stream", _WRITTEN)
    records = accept_records(cursor, form, options, keyed=bool(key))
    if records is None:
        timestamp, timed_at, events = parse_events(cursor, key, watermark)
    else:
        timestamp, timed_at, events = parse_record_columns(cursor, records, watermark)
    time = parse_time_clauses(cursor, TimeClauses(watermark.behind) if watermark else NOTHING_SAID)
    if time.overflow is not None and form.text.lower() != "push":
        raise LanguageError(
            f"OVERFLOW is of streams FROM push, and {name.text} is FROM {form.text}",
            position=form.position,
            hint="leave it out: an epoch takes of other input as much as it can",
        )
    if isinstance(timestamp, ComputedColumn):
        computed, timestamp = _with_timestamp(timestamp, columns, computed), timestamp.name
    if records is not None and computed:
        raise LanguageError("records of changes have no computed columns", position=begin, hint=_COMPUTED)
    if records is not None and columns is not None:
        columns = columns_with_records(columns, records, str(timestamp))
    statement = CreateStream(
        *(name.text, columns, form.text.lower(), options, timestamp, time, position, timed_at, key, events),
        records=records,
        computed=computed,
    )
    if columns is not None and not computed:
        # The columns are checked now, so that the error comes before any input is opened.
        describe_stream(statement, columns)
    return statement


def parse_alter_stream(cursor: Cursor, position: Position) -> AlterStream | AddColumns:
    """Read what follows ALTER STREAM: a name, and clauses about its time or further columns.

    Raises:
        LanguageError: the text is malformed, or a column is named twice.
    """
    name = cursor.name("the stream's name")
    if not cursor.at("ADD"):
        if cursor.word() in _ALTERED_COLUMNS and cursor.word(1) == "COLUMN":
            hint = "write ADD COLUMN name TYPE; what queries do not name they do not read"
            raise cursor.error("columns of a stream stay as they are", hint)
        return parse_altered_clauses(cursor, name, position)
    fields: list[Field] = []
    missing: frozenset[str] = frozenset()
    while True:
        cursor.expect("ADD", "before COLUMN")
        cursor.accept("COLUMN")
        place = cursor.position
        is_conditional = cursor.accept("IF", "NOT", "EXISTS")
        column = _column(cursor)
        if isinstance(column, ComputedColumn):
            message = "a column that is added comes with the rows"
            raise LanguageError(message, position=place, hint="compute others in a query")
        _refuse_constraint(cursor)
        if any(column.name.lower() == one.name.lower() for one in fields):
            message = f"the column {column.name} is named twice"
            raise LanguageError(message, position=place, hint="leave one of them out")
        fields.append(column)
        missing |= {column.name} if is_conditional else set()
        if not cursor.accept(","):
            return AddColumns(name, Schema(tuple(fields)), position, missing)


_ALTERED_COLUMNS: Final = ("DROP", "RENAME", "ALTER", "MODIFY", "CHANGE")


def _with_timestamp(
    timestamp: ComputedColumn, columns: Schema | None, computed: tuple[ComputedColumn, ...]
) -> tuple[ComputedColumn, ...]:
    """The computed columns with one more, which the rows are timed by."""
    names = [] if columns is None else columns.names
    if timestamp.name.lower() in (name.lower() for name in (*names, *(one.name for one in computed))):
        raise LanguageError(
            f"there is a column {timestamp.name} already, besides what the rows are timed by",
            position=timestamp.position,
            hint=f"write TIMESTAMP BY {timestamp.text} AS another_name",
        )
    return (*computed, timestamp)


def parse_input(
    cursor: Cursor, columns: Schema | None, what: str, written: str
) -> tuple[Name, tuple[tuple[str, str], ...]]:
    """Read `FROM format [OPTIONS (...)]` or `SOURCE format (...)`: the format and its options.

    Args:
        cursor: where it begins.
        columns: the declared columns, or None.
        what: what is read from it, such as a stream.
        written: how it is written as a whole.

    Raises:
        LanguageError: the text is malformed, or the format needs something that it does not have.
    """
    if not (cursor.at("FROM") or cursor.at("SOURCE")):
        raise cursor.error(f"FROM is missing, before {cursor.shown()}", written)
    named_arguments = cursor.word() == "SOURCE"
    cursor.index += 1
    form = _format(cursor, columns, what)
    if named_arguments:
        cursor.expect("(", f"after SOURCE {form.text}")
        options = _options(cursor, positional=True)
    else:
        options = parse_options(cursor)
    kind = form.text.lower()
    secret = next((name for name, value in options if isinstance(value, SecretName)), None)
    secrets = SECRET_OPTIONS.get(kind, ())
    if secret is not None and kind in FORMATS and secret not in secrets:
        raise LanguageError(
            f"the option {secret} of {kind} is not secret",
            position=form.position,
            hint=f"write its value{'; SECRET is for ' * bool(secrets)}{', '.join(secrets)}",
        )
    if kind in FILE_FORMATS and "path" not in dict(options):
        if misspelt := next((name for name, _ in options if did_you_mean(name, ("path",))), None):
            message, hint = f"there is no option {misspelt} of {kind}", "did you mean path?"
        else:
            message = f"a {what} from {kind} needs a path"
            hint = f"write FROM {kind} OPTIONS (path 'file or folder')"
        raise LanguageError(message, position=form.position, hint=hint)
    if cursor.at("KEY"):
        raise cursor.error("KEY comes before FROM", f"write KEY (column) before FROM {form.text}")
    return form, options


def parse_columns(
    cursor: Cursor,
) -> tuple[Schema | None, Watermark | None, tuple[ComputedColumn, ...]]:
    """Read the columns in parentheses, and the watermark and computed columns among them.

    Returns:
        The columns of the input, or None where all that are named are computed; the watermark; and what is
        computed.

    Raises:
        LanguageError: the text is malformed, or names a column twice.
    """
    position = cursor.position
    cursor.expect("(", "before the columns")
    fields: list[Field] = []
    computed: list[ComputedColumn] = []
    watermark: Watermark | None = None
    while True:
        if not cursor.at("WATERMARK", "FOR"):
            column = _column(cursor)
            if isinstance(column, ComputedColumn):
                computed.append(column)
            else:
                fields.append(column)
        elif watermark is None:
            watermark = _watermark(cursor)
        else:
            raise cursor.error("WATERMARK FOR is given twice", "leave one of them out")
        if not cursor.accept(","):
            break
    if not cursor.at(")"):
        _refuse_constraint(cursor)
        raise cursor.error(f"',' or ')' is missing after a column, before {cursor.shown()}")
    cursor.index += 1
    try:
        # All names together, so that none comes twice.
        Schema((*fields, *(Field(column.name, BIGINT) for column in computed)))
        columns = Schema(tuple(fields)) if fields or not computed else None
        return columns, watermark, tuple(computed)
    except PlanError as error:
        raise LanguageError(error.message, position=position, hint="leave one of them out") from None


_CONSTRAINTS: Final = ("NOT", "NULL", "PRIMARY KEY", "DEFAULT", "UNIQUE", "COMMENT", "CHECK")
_ALONE: Final = "write the name and the type alone; every column may hold NULL"


def _refuse_constraint(cursor: Cursor) -> None:
    if cursor.word() in _CONSTRAINTS:
        raise cursor.error("columns have no constraints", _ALONE)
    if cursor.at("WITH", "TIME") or cursor.at("WITHOUT", "TIME") or cursor.at("WITH", "LOCAL"):
        raise cursor.error("types have no time zone", "write TIMESTAMP alone, which is in UTC")


def _watermark(cursor: Cursor) -> Watermark:
    """Read `WATERMARK FOR column AS column [- INTERVAL '5' SECOND]`."""
    cursor.index += 2
    column = cursor.name("the column after WATERMARK FOR")
    cursor.expect("AS", f"after WATERMARK FOR {column.text}")
    again = cursor.name("the watermark's column")
    if again.text.lower() != column.text.lower():
        message = f"the watermark of {column.text} is computed from {again.text}"
        raise LanguageError(message, position=again.position, hint=_WATERMARK)
    behind = parse_duration_at(cursor, "the length after '-'") if cursor.accept("-") else Duration(0)
    if not (cursor.at(",") or cursor.at(")")):
        raise cursor.error(f"{cursor.shown()} is unexpected in a watermark", _WATERMARK)
    return Watermark(column, behind)


def _column(cursor: Cursor) -> Field | ComputedColumn:
    if cursor.at("PRIMARY KEY"):
        raise cursor.error("streams have no keys", "leave it out; every row is an event of its own")
    name = cursor.name("a column's name")
    if cursor.at("AS", "PROCTIME"):
        hint = f"leave it out, and write TIMESTAMP BY ARRIVAL AS {name.text}"
        raise cursor.error(f"the column {name.text} is the clock's reading", hint)
    if cursor.accept("AS"):
        begin, position = cursor.index, cursor.position
        expression = cursor.scalar(f"what {name.text} is computed of")
        return ComputedColumn(name.text, cursor.text_from(begin), expression, position)
    return Field(name.text, parse_type(cursor, name))


def _format(cursor: Cursor, columns: Schema | None, what: str) -> Name:
    token = cursor.peek()
    if token is not None and token.token_type == TokenType.STRING:
        suited = format_of_ending(token.text.rpartition(".")[2]) or "csv"
        written = f"write FROM {suited} OPTIONS (path '{token.text}')"
        raise cursor.error(f"a format is missing, before {cursor.shown()}", written)
    form = cursor.name("a format")
    kind = form.text.lower()
    if hint := FOREIGN_FORMATS.get(kind):
        raise LanguageError(f"there is no format {form.text}", position=form.position, hint=hint)
    if kind not in FORMATS:
        hint = did_you_mean(kind, FORMATS)
        if hint is not None:
            raise LanguageError(f"there is no format {form.text}", position=form.position, hint=hint)
    if kind in UNTYPED_FORMATS and columns is None:
        hint = f"write CREATE {what.upper()} name (column TYPE, ...) FROM {kind}"
        raise LanguageError(f"{kind} does not describe its columns", position=form.position, hint=hint)
    return form


def parse_options(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    """Read `OPTIONS (key 'value', key = value, key SECRET 'name', ...)`, if it is there.

    Raises:
        LanguageError: the text is malformed, or an option is given twice.
    """
    if not cursor.accept("OPTIONS"):
        return ()
    cursor.expect("(", "after OPTIONS")
    return _options(cursor, positional=False)


def _options(cursor: Cursor, *, positional: bool) -> tuple[tuple[str, str], ...]:
    """Read `key 'value', key = value, ...)`; SOURCE's first argument may be the path alone."""
    options: dict[str, str] = {}
    while not cursor.accept(")"):
        if options and not cursor.accept(","):
            raise cursor.error(f"',' or ')' is missing after an option, before {cursor.shown()}")
        position = cursor.position
        token = cursor.peek()
        if positional and not options and token is not None and token.token_type == TokenType.STRING:
            key, value = "path", _value(cursor)
        else:
            key = _key(cursor)
            if not cursor.accept("="):
                cursor.accept("=>")
            value = _value(cursor)
        if key in options:
            raise LanguageError(f"the option {key} is given twice", position=position)
        options[key] = value
    return tuple(options.items())


def _key(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is not None and token.token_type == TokenType.STRING:
        cursor.index += 1
        return str(token.text).lower()
    parts = [_key_part(cursor)]
    while cursor.accept("."):
        parts.append(_key_part(cursor))
    return ".".join(parts).lower()


def _key_part(cursor: Cursor) -> str:
    """A name, or a word such as NULL, which is no name elsewhere."""
    word = cursor.word()
    if word.isidentifier() and cursor.word(1) not in (",", ")"):
        cursor.index += 1
        return word
    return cursor.name("an option's name").text


def _value(cursor: Cursor) -> str:
    sign = "-" if cursor.accept("-") else ""
    token = cursor.peek()
    if cursor.word() == "SECRET" and not sign:
        cursor.index += 1
        named = cursor.peek()
        if named is None or named.token_type != TokenType.STRING or not named.text.isidentifier():
            hint = "write key SECRET 'name', with letters, digits and _"
            raise cursor.error(f"the name of a secret is missing, before {cursor.shown()}", hint)
        cursor.index += 1
        return SecretName(named.text)
    literal = token is not None and token.token_type in (TokenType.STRING, TokenType.NUMBER)
    if token is None or not (literal or (cursor.word().isidentifier() and not sign)):
        raise cursor.error(
            f"an option's value is missing, before {cursor.shown()}", "write key 'value' or key = value"
        )
    cursor.index += 1
    return sign + str(token.text)
