"""CREATE STREAM ... FROM: the input of a stream, by what it is read from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from headrace.algebra.debezium import PARTITION
from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import conceal, hidden, open_options, revealed
from headrace.engine.inputs.inputs import Input, origin_of, schema_of_frame, warn_of_ties
from headrace.engine.inputs.signatures import Signature
from headrace.engine.inputs.times import timing_of
from headrace.errors import HeadraceError, LanguageError, SourceError, UserError, told, warn
from headrace.language.binding.computed import bind_computed
from headrace.language.catalog import describe_stream
from headrace.language.statements.formats import FILE_FORMATS, FORMATS, ChangeRecords
from headrace.language.statements.streams import WEB, CreateStream, PerClause, is_topic
from headrace.language.syntax import Name
from headrace.runtime.intake.brokers import TopicsOverview
from headrace.runtime.intake.folder import OPTIONS, is_followed, open_folder, starts_above
from headrace.runtime.intake.pipe import open_pipe
from headrace.runtime.intake.streams import BoundedStream, LiveStream
from headrace.runtime.intake.topic import Topic, open_topic
from headrace.runtime.intake.web import open_web
from headrace.runtime.outside.patience import patience, patient
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.composed.later import LaterSource
from headrace.runtime.sources.files.files import pipe_at
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.schema import Schema
from headrace.time import Duration

PUSH: Final = "push"
"""The format of a stream whose rows are pushed."""


LIMIT: Final = "max_rows_per_epoch"
"""The option that every format has."""
PUSHED_OPTIONS: Final = ("signature", "secret", "unknown")
"""The options of pushed streams besides."""

_ASKED: Final = 2.0
"""Seconds that brokers have to say which topics there are when a stream of them is created."""

T = TypeVar("T")


def declared(
    statement: CreateStream,
    base: Path,
    policy: Policy,
    read_stream: Callable[..., Any],
    *,
    known: Schema | None = None,
) -> Input:
    """The input that a CREATE STREAM names.

    Args:
        statement: the statement.
        base: the folder that relative paths start from.
        policy: what the statement may reach.
        read_stream: `(format, options, schema)` to a streaming data frame, for Spark's own formats.
        known: the columns that its rows come with, if a store has it, so that it need not be there just now.

    Raises:
        PolicyError: the policy does not allow it; like every error, it has the statement's position.
        UserError: the input cannot be read.
    """
    made = _declared(statement, base, policy, read_stream, known)
    if statement.columns is None or made.frame is not None:
        return made

    def again(columns: Schema) -> Input:
        return declared(replace(statement, columns=columns), base, policy, read_stream, known=columns)

    return replace(made, again=again)


def _declared(
    statement: CreateStream,
    base: Path,
    policy: Policy,
    read_stream: Callable[..., Any],
    known: Schema | None,
) -> Input:
    options = dict(statement.options)
    try:
        policy.check_source(statement)
        max_rows = _row_limit(options)
        if statement.format in FILE_FORMATS and is_followed(options):
            if pipe_at(options.get("path", ""), base, policy.folders):
                return _of_pipe(statement, options, max_rows, base)
            return _followed(statement, options, max_rows, base, policy, known is not None)
        if statement.format in FORMATS and statement.format != PUSH:
            return _bounded(statement, options, max_rows, base, policy, known)
        if statement.format == PUSH:
            return _pushed(statement, options, max_rows)
        if is_topic(statement.format, statement.options):
            return _of_topic(statement, options, max_rows, base, policy)
        if statement.format == WEB:
            return _of_web(statement, options, max_rows)
        options = revealed(policy.spark_options(options, base))
        frame = _hiding(options, lambda: read_stream(statement.format, options, statement.columns))
        columns = _with_computed(statement, statement.columns or schema_of_frame(frame))
        info = describe_stream(statement, columns.schema)
        origin = _spark_origin(statement.format, options)
        warn_of_ties(statement.name, info.changes)
        now = statement.format == "kafka"
        timing = timing_of(statement.time, info, comes_now=now, in_batches=True)
        live = LiveStream(columns.schema, info.timestamp, timing, info.changes, computed=columns)
        return Input(info, live, frame, max_rows, statement.time, now, origin)
    except UserError as error:
        error.position = error.position or statement.position
        conceal(error, dict(statement.options))
        raise


def _bounded(
    statement: CreateStream,
    options: dict[str, str],
    max_rows: int | None,
    base: Path,
    policy: Policy,
    known: Schema | None,
) -> Input:
    """The input that files, or computed rows, are that end."""
    named = {column.name.lower() for column in statement.computed}
    timed = statement.timestamp
    column = timed if isinstance(timed, str) and timed.lower() not in named else None
    given = {name: value for name, value in revealed(options).items() if name not in OPTIONS}
    opened = partial(
        open_source,
        *(statement.format, given, statement.columns, column, statement.name, base, policy.folders),
        records=statement.records,
        columns_above="",
    )
    source = opened_or_known(opened, known, statement.name)
    source = _with_computed(statement, source.schema).over(source)
    info = describe_stream(statement, source.schema)
    timing = timing_of(statement.time, info, comes_now=False)
    bounded = BoundedStream(source, info.timestamp, timing, max_rows, info.changes)
    origin = origin_of(statement.format, options, base)
    return Input(info, bounded, None, max_rows, statement.time, origin=origin)


def opened_or_known(opened: Callable[[], SplitSource], known: Schema | None, name: str) -> SplitSource:
    """A source of files, with the columns that a store knows.

    Where a store knows it, and it cannot be opened for now, it is opened later. Columns that nobody declared,
    and that files have since it was made, are left out with a warning.

    Args:
        opened: opens it.
        known: its columns, if a store knows it.
        name: the stream or the relation.

    Raises:
        SourceError: it cannot be opened, and no store knows it.
    """
    if known is None:
        return opened()
    try:
        # A store with many of them is to be open soon, also where none answers.
        with patient(silent=patience().opening):
            return _as_known(opened(), known, name)
    except SourceError as error:
        warn(f"{name} goes on with what was read of it: {told(error)}")
        return LaterSource(known, opened)


def _as_known(source: SplitSource, known: Schema, name: str) -> SplitSource:
    """A source without the columns that a store does not know, where it has all the others as they were."""
    further = [field.name for field in source.schema if known.find(field.name) is None]
    kept = tuple(field for field in source.schema if known.find(field.name) is not None)
    if not further or kept != known.fields:
        return source
    warn(
        f"{name} goes on without {', '.join(further)}, which its files did not have when the store was made; "
        "a stream of another name has it"
    )
    # All that read files are dataclasses with their columns, and read those that they are asked for.
    narrowed: SplitSource = replace(cast(Any, source), schema=known)
    return narrowed


def _with_computed(statement: CreateStream, given: Schema) -> ComputedColumns:
    """The columns of an input, and those that the statement computes of them.

    Raises:
        LanguageError: an expression is wrong, or a name is there twice.
    """
    return ComputedColumns(given, bind_computed(statement.computed, given))


def _hiding(options: Mapping[str, str], opened: Callable[[], T]) -> T:
    """What a library opens by options; no error shows a secret of theirs."""
    try:
        return opened()
    except HeadraceError as error:
        hint = None if error.hint is None else hidden(error.hint, options)
        message = hidden(error.message, options)
    # Outside of it, so that a traceback does not show what the library has said.
    raise SourceError(message, hint=hint)


def _followed(
    statement: CreateStream,
    options: dict[str, str],
    max_rows: int | None,
    base: Path,
    policy: Policy,
    is_known: bool,
) -> Input:
    """The input that a folder is whose files keep coming."""
    if statement.columns is None:
        hint = f"write CREATE STREAM {statement.name} (column TYPE, ...) FROM {statement.format}"
        raise LanguageError("a folder that is followed may be empty at first: declare the columns", hint=hint)
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)
    given = revealed(options)
    of_files = {name: value for name, value in given.items() if name not in OPTIONS}
    timed = info.timestamp if info.timestamp in columns.given.names else None
    above = starts_above(given.get("path", ""), base)

    def opened(label: str) -> SplitSource:
        # Files that come later may be older or newer than the declaration.
        options = {"missing": "some", **of_files, "path": label}
        found = open_source(
            *(statement.format, options, columns.given, timed, statement.name, base),
            policy.folders,
            records=statement.records,
            columns_above=above,
        )
        return columns.over(found)

    folder = open_folder(given, base, policy.folders, columns.schema, opened, is_known=is_known)
    live = LiveStream(
        columns.schema, info.timestamp, timing_of(statement.time, info, comes_now=False), info.changes
    )
    origin = origin_of(statement.format, {**of_files, "follow": "true"}, base)
    return Input(info, live, None, max_rows, statement.time, origin=origin, followed=folder)


def _of_pipe(statement: CreateStream, options: dict[str, str], max_rows: int | None, base: Path) -> Input:
    """The input that a pipe is whose lines count as they come."""
    if statement.columns is None:
        hint = f"write CREATE STREAM {statement.name} (column TYPE, ...) FROM {statement.format}"
        raise LanguageError("what a pipe will bring is not known: declare the columns", hint=hint)
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)
    given = revealed(options)
    of_lines = {name: value for name, value in given.items() if name not in OPTIONS}
    if statement.format == "json":
        of_lines = {"missing": "some", **of_lines}

    def opened(name: str, folder: Path) -> SplitSource:
        path = {"path": name}
        found = open_source(
            *(statement.format, of_lines | path, columns.given, None, statement.name, folder),
            records=statement.records,
        )
        return columns.over(found)

    pipe = open_pipe(statement.format, given, base, columns.schema, opened)
    live = LiveStream(
        columns.schema, info.timestamp, timing_of(statement.time, info, comes_now=False), info.changes
    )
    origin = origin_of(statement.format, {"path": given["path"]}, base)
    return Input(info, live, None, max_rows, statement.time, origin=origin, followed=pipe)


def _of_topic(
    statement: CreateStream, options: dict[str, str], max_rows: int | None, base: Path, policy: Policy
) -> Input:
    """The input that a Kafka topic is."""
    if statement.columns is None:
        hint = f"write CREATE STREAM {statement.name} (column TYPE, ...) FROM kafka"
        raise LanguageError("a topic does not say what is in it: declare the columns", hint=hint)
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)
    given = revealed(options)
    key = [name.text for name in statement.key]
    topic = _hiding(given, lambda: open_topic(given, columns, statement.records, base, policy.folders, key))
    clauses = statement.time
    if statement.records is ChangeRecords.UPSERT and clauses.is_timeless:
        # Each partition is in order, and one that is read up to its end is not waited for.
        by_partition = PerClause(Name(PARTITION, statement.position))
        clauses = replace(clauses, per=by_partition, idle_after=Duration(0))
    timing = timing_of(clauses, info, comes_now=True)
    live = LiveStream(columns.schema, info.timestamp, timing, info.changes)
    # The brokers may be others when it is read on, and secrets are in no store.
    form = "" if statement.records is not ChangeRecords.UPSERT else " upserts"
    origin = f"{topic.origin} as {options.get('format', 'json')}{form}"
    return Input(info, live, None, max_rows, clauses, True, origin, followed=topic)


def overview_of(made: Input) -> TopicsOverview | None:
    """The topics that a stream is to read; None if it reads none, or their brokers do not answer at once.

    Args:
        made: the stream.
    """
    if isinstance(made.followed, Topic):
        # While they are away nothing is known, and the stream waits for them.
        with suppress(SourceError):
            return made.followed.brokers(_ASKED).overview()
    return None


def _of_web(statement: CreateStream, options: dict[str, str], max_rows: int | None) -> Input:
    """The input that an address of the web is."""
    if statement.columns is None:
        hint = f"write CREATE STREAM {statement.name} (column TYPE, ...) FROM {WEB}"
        raise LanguageError("what an address will answer is not known: declare the columns", hint=hint)
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)

    def opened(form: str, given: dict[str, str]) -> SplitSource:
        return columns.over(open_source(form, given, columns.given, None, statement.name, Path()))

    given = revealed(options)
    web = _hiding(given, lambda: open_web(given, columns.schema, opened))
    live = LiveStream(
        columns.schema, info.timestamp, timing_of(statement.time, info, comes_now=False), info.changes
    )
    origin = origin_of(WEB, {"url": str(options["url"])}, Path())
    return Input(info, live, None, max_rows, statement.time, origin=origin, followed=web)


def _pushed(statement: CreateStream, options: Mapping[str, str], max_rows: int | None) -> Input:
    if statement.columns is None:
        raise LanguageError(
            "rows that are pushed do not say which columns there are: declare them",
            hint=f"write CREATE STREAM {statement.name} (column TYPE, ...) FROM push",
        )
    given = revealed(options)
    signature = Signature.of(given)
    unknown = given.pop("unknown", "ignore").lower()
    if unknown not in ("ignore", "refuse"):
        hint = "write 'refuse', or 'ignore' to leave such columns out"
        raise LanguageError(f"the option unknown is '{unknown}'", hint=hint)
    if given:
        hint = f"it has {LIMIT}, {', '.join(PUSHED_OPTIONS[:-1])} and {PUSHED_OPTIONS[-1]}"
        raise LanguageError(f"push has no option {next(iter(given))}", hint=hint)
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)
    timing = timing_of(statement.time, info, comes_now=True)
    live = LiveStream(
        *(columns.schema, info.timestamp, timing, info.changes),
        computed=columns,
        refuses_unknown=unknown == "refuse",
    )
    return Input(info, live, None, max_rows, statement.time, True, PUSH, signature=signature)


_MAY_CHANGE: Final = ("kafka.", "max", "min")
"""How options of Spark's sources begin that say where a server is and how much a batch takes."""


def _spark_origin(format: str, options: Mapping[str, str]) -> str:
    """What one of Spark's formats reads, as a digest; another password reads the same."""
    told = {name: value for name, value in open_options(options).items() if not name.startswith(_MAY_CHANGE)}
    return f"{format} {hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()[:16]}"


def _row_limit(options: dict[str, str]) -> int | None:
    text = options.pop(LIMIT, None)
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"{LIMIT} must be a positive number, not '{text}'")
    return int(text)
