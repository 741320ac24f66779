"""One question, answered by DuckDB over Arrow tables and nothing else.

DuckDB may read no file, no address and no variable of this process, load no extension and change no setting;
what it uses of memory, processors and time is limited. It spills nothing to disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Any, Final

import pyarrow as pa

from headrace.engine.asking.references import words_of
from headrace.engine.views.frames import optional
from headrace.errors import LanguageError, PolicyError, Position, UserError
from headrace.language.named_values import ParameterValue
from headrace.runtime.driver.endless.withdrawal import check_wanted, withdrawing

_BATCH_ROWS: Final = 50_000
_CONFINED: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_AFTER_THE_TABLES: Final = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_ABOUT_DUCKDB: Final = ("pg_settings", "which_secret")
_WHAT_IT_READS: Final = (
    "a question reads what Headrace keeps: HISTORY OF, SNAPSHOT OF, CHANGES OF, DEAD LETTERS OF ..."
)
_READS_ONLY: Final = ("StatementType.SELECT", "StatementType.EXPLAIN")


@dataclass(frozen=True)
class QuestionLimits:
    """What a question may use.

    Attributes:
        seconds: after so many it is ended.
        memory: megabytes for DuckDB, the tables that it reads not counted.
        threads: processors.
        rows: of the answer; one that has more is refused.
    """

    seconds: float = 30.0
    memory: int = 1_000
    threads: int = 2
    rows: int = 10_000_000

    def __post_init__(self) -> None:
        for name in ("seconds", "memory", "threads", "rows"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")


TableName = tuple[str, str]
"""The schema and the name of a table."""


def answer(
    question: str,
    tables: Mapping[TableName, pa.Table],
    limits: QuestionLimits,
    values: Mapping[str, ParameterValue],
) -> pa.Table:
    """The rows of a SELECT over tables.

    Args:
        question: one statement of DuckDB's SQL that only reads.
        tables: what it can read.
        limits: what it may use.
        values: those of its placeholders `$name`, all of which it has.

    Raises:
        UserError: DuckDB is not installed, the question is wrong or no SELECT, or it exceeds a limit.
        WithdrawnError: nobody waits for the answer any more.
        PolicyError: it reaches for something else than the tables.
    """
    duckdb = optional("duckdb", "sql")
    limited = {"memory_limit": f"{limits.memory}MB", "threads": str(limits.threads)}
    with duckdb.connect(":memory:", config=_CONFINED | limited) as connection, _explained(duckdb, limits):
        _check_that_it_reads(duckdb, question)
        _check_that_it_asks_for_rows(question)
        for number, ((schema, name), table) in enumerate(tables.items()):
            connection.register(f"headrace_{number}", table)
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            quoted = name.replace('"', '""')
            connection.execute(f'CREATE VIEW {schema}."{quoted}" AS FROM headrace_{number}')
        for setting in _AFTER_THE_TABLES:
            connection.execute(setting)
        timer = Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            with withdrawing(connection.interrupt):
                bound = _with_texts(duckdb, _bound(duckdb, connection, question, dict(values)))
                return _rows(bound.to_arrow_reader(_BATCH_ROWS), limits.rows)
        finally:
            timer.cancel()


def _check_that_it_reads(duckdb: Any, question: str) -> None:
    statements = duckdb.extract_statements(question)
    if len(statements) != 1:
        raise LanguageError(f"one question at a time, not {len(statements)}", hint="leave out the others")
    kind = str(statements[0].type)
    if kind not in _READS_ONLY:
        raise PolicyError(
            f"a question is a SELECT, not a statement of the kind {kind.removeprefix('StatementType.')}",
            hint="ask for the rows, and write or change things elsewhere",
        )


def _check_that_it_asks_for_rows(question: str) -> None:
    """Refuse questions about DuckDB and its machine.

    Raises:
        PolicyError: the question asks for it.
    """
    for word in words_of(question):
        name = (word.named or "").lower()
        if name.startswith(("duckdb_", "pragma_")) or name in _ABOUT_DUCKDB:
            raise PolicyError(f"{name} is about DuckDB, and not about rows", hint=_WHAT_IT_READS)


def _bound(duckdb: Any, connection: Any, question: str, values: dict[str, ParameterValue]) -> Any:
    """The question with all its names known."""
    try:
        return connection.sql(question, params=values or None)
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException):
        # It fails again before anything runs, and says the place, which relations leave out.
        connection.execute(question, values or None)
        raise


_AS_TEXT: Final = frozenset(
    (
        "interval",
        "time",
        "time with time zone",
        "time_ns",
        "bit",
        "enum",
        "union",
        "timestamp_ns",
        "bignum",
        "variant",
    )
)
"""Types of DuckDB's that Headrace does not have."""


def _with_texts(duckdb: Any, bound: Any) -> Any:
    """The answer with texts for values of types that Headrace lacks, also within nested ones."""
    wanted = [_with_text(duckdb, dtype) for dtype in bound.types]
    if wanted == list(bound.types):
        return bound
    # By places: names may come twice.
    columns = [
        duckdb.SQLExpression(f"#{place}").cast(dtype).alias(name)
        for place, (dtype, name) in enumerate(zip(wanted, bound.columns, strict=True), start=1)
    ]
    return bound.select(*columns)


def _with_text(duckdb: Any, dtype: Any) -> Any:
    if dtype.id in _AS_TEXT:
        return duckdb.type("VARCHAR")
    match dtype.id, dict(dtype.children if dtype.id in ("list", "array", "struct", "map") else ()):
        case "list" | "array", {"child": child}:
            return duckdb.list_type(_with_text(duckdb, child))
        case "map", {"key": key, "value": value}:
            return duckdb.map_type(_with_text(duckdb, key), _with_text(duckdb, value))
        case "struct", fields:
            return duckdb.struct_type({name: _with_text(duckdb, part) for name, part in fields.items()})
    return dtype


def _rows(reader: pa.RecordBatchReader, most: int) -> pa.Table:
    batches, rows = list[pa.RecordBatch](), 0
    for batch in reader:
        rows += batch.num_rows
        if rows > most:
            raise UserError(
                f"the answer has more than {most:,} rows", hint="add a LIMIT, or ask with rows=... for more"
            )
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _explained(duckdb: Any, limits: QuestionLimits) -> Iterator[None]:
    """DuckDB's errors as ours, with the place in the question."""
    try:
        yield
    except duckdb.InterruptException as error:
        check_wanted()
        raise UserError(
            f"the question took longer than {limits.seconds:g} seconds",
            hint="ask for less, or with seconds=... for more time",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise UserError(
            f"the question needs more than {limits.memory:,} MB of memory",
            hint="ask for less, or with memory=... for more",
        ) from error
    except duckdb.PermissionException as error:
        raise PolicyError(
            _message(error),
            position=_position(error),
            hint=_WHAT_IT_READS,
        ) from error
    except duckdb.Error as error:
        raise LanguageError(_message(error), position=_position(error), hint=_hint(error)) from error


def _message(error: Exception) -> str:
    """The first line of DuckDB's message, without the kind of error."""
    first = str(error).split("\n", 1)[0]
    return "DuckDB: " + re.sub(r"^[A-Z][\w ]* Error: ", "", first).rstrip(".!")


def _position(error: Exception) -> Position | None:
    """The place that DuckDB shows by a caret below a line, if it shows the line from its beginning."""
    shown = re.search(r"^LINE (\d+): (.*)\n( *)\^", str(error), re.MULTILINE)
    if shown is None or shown[2].startswith("..."):
        return None
    return Position(int(shown[1]), max(1, len(shown[3]) - len(f"LINE {shown[1]}: ") + 1))


def _hint(error: Exception) -> str | None:
    missing = re.search(r"Table with name (\S+) does not exist", str(error))
    if missing is not None:
        name = missing[1].rsplit(".", 1)[-1]
        return f"for the answer of a query write HISTORY OF {name}"
    candidates = re.search(r"^(?:Candidate bindings|Did you mean):? (.*)$", str(error), re.MULTILINE)
    return f"DuckDB suggests {candidates[1].rstrip('?')}" if candidates is not None else None
