"""The inputs of a database: what a stream is read from, and how rows get into it."""

from __future__ import annotations

import hashlib
import importlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import pyarrow as pa

from headrace.algebra.letters import letters_schema, noted_at
from headrace.algebra.system_streams import NOTED_AT, SystemStream
from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import hidden, open_options, revealed
from headrace.engine.inputs.corrections import Said
from headrace.engine.inputs.times import Length, disorder_of, retain_of, timing_of
from headrace.errors import HeadraceError, LanguageError, SourceError, UserError
from headrace.heartbeats.timing import BY_ARRIVAL, Follow, Timing
from headrace.language.binding.computed import bind_computed
from headrace.language.catalog import RelationInfo, StreamInfo, describe_stream
from headrace.language.statements.formats import FILE_FORMATS, FORMATS
from headrace.language.statements.overflow import Overflow
from headrace.language.statements.statements import (
    NOTHING_SAID,
    WEB,
    ByArrival,
    CreateStream,
    TimeClauses,
    is_topic,
)
from headrace.runtime.intake.feed import Feed
from headrace.runtime.intake.folder import OPTIONS, Folder, is_followed, open_folder, starts_above
from headrace.runtime.intake.folder_feed import FolderFeed
from headrace.runtime.intake.pull_feed import PullFeed
from headrace.runtime.intake.pulling import Pull
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.streams import BoundedStream, LetterStream, LiveStream
from headrace.runtime.intake.system_feed import Pace, SystemFeed
from headrace.runtime.intake.topic import Topic, open_topic
from headrace.runtime.intake.topic_feed import TopicFeed
from headrace.runtime.intake.web import open_web
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.computed import ComputedColumns
from headrace.runtime.sources.composed.tables import digest_of_rows, to_arrow_table, write_arrow
from headrace.runtime.sources.files.patterns import plain_path
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, is_remote
from headrace.runtime.sources.rows.contract import SplitSource
from headrace.runtime.sources.rows.widening import readable_schema
from headrace.runtime.sources.text.coding import without_compression
from headrace.runtime.spark.feed import SparkFeed, may_read_ahead
from headrace.runtime.spark.scans import file_batches
from headrace.runtime.store.paths import file_name, inside, make_inside
from headrace.runtime.store.segments import cannot_write
from headrace.runtime.store.temporary import private_folder
from headrace.schema import Schema

SYSTEM_STREAMS: Final[Mapping[str, LiveStream]] = MappingProxyType(
    {kind.full_name: LiveStream(kind.schema, NOTED_AT, BY_ARRIVAL) for kind in SystemStream}
)
"""The streams in which a run describes itself, by name."""

PUSH: Final = "push"
"""The format of a stream whose rows are pushed."""

_LIMIT: Final = "max_rows_per_epoch"

T = TypeVar("T")


@dataclass(frozen=True)
class Input:
    """A stream as the engine keeps it.

    Attributes:
        info: its entry in the catalog.
        stream: what a run reads.
        frame: the streaming data frame it comes from, or None.
        followed: the folder or the Kafka topic that it follows, or what its rows are pulled from; or None.
        max_rows: how many rows an epoch takes at most; None where only the epoch's size limits it.
        clauses: what has been said about its time.
        comes_now: whether its rows come as they happen, so that none can be of the far future.
        origin: what its rows are read from, as text; empty for a table that was handed over, which is known
            by its rows.
        relation: the relation whose changes it is, or None.
    """

    info: StreamInfo
    stream: BoundedStream | LiveStream
    frame: Any = None
    max_rows: int | None = None
    clauses: TimeClauses = NOTHING_SAID
    comes_now: bool = False
    origin: str = ""
    relation: RelationInfo | None = None
    followed: Folder | Topic | Pull | None = None

    @property
    def entry(self) -> StreamInfo | RelationInfo:
        """What its name means in the catalog."""
        return self.info if self.relation is None else self.relation

    @property
    def overflow(self) -> Overflow:
        """What happens to rows that are pushed faster than epochs take them."""
        return self.clauses.overflow or Overflow.BLOCK

    @cached_property
    def incoming(self) -> BoundedStream | LiveStream:
        """What a run reads, with what is said of its dead letters, and of the rows that are kept."""
        kept, retain = self.clauses.letters, retain_of(self.clauses, self.info.domain)
        return replace(self.stream, letters_kept=None if kept is None else kept.length, retain=retain)

    @cached_property
    def letters(self) -> LetterStream:
        """Its dead letters as a stream."""
        columns = self.info.schema
        return LetterStream(self.name, letters_schema(columns), noted_at(columns))

    @property
    def is_live(self) -> bool:
        """Whether it never ends."""
        return isinstance(self.stream, LiveStream)

    def retimed(self, clauses: TimeClauses) -> Input:
        """The same, with something else said about its time; bounds from other streams stay.

        Raises:
            LanguageError: a clause does not fit the stream.
        """
        batches = self.frame is not None
        timing = timing_of(clauses, self.info, comes_now=self.comes_now, in_batches=batches)
        timeless = clauses.is_timeless
        if self.relation is not None and timeless and not self.info.by_arrival:
            # It is not waited for: at once it follows the streams that it is read with.
            timing = replace(timing, idle_after=0)
        stream = self._with(replace(timing, follows=self.stream.timing.follows))
        return replace(self, stream=stream, clauses=clauses)

    def following(self, others: Iterable[str], follow: Follow | None) -> Input:
        """The same, following some streams in another way, or no longer.

        Args:
            others: their names, its own perhaps among them; what was said of the same streams is replaced.
            follow: how it follows them from now on, or None.
        """
        same = {*others} - {self.name}
        kept = tuple(one for one in self.stream.timing.follows if self._others(one) != same)
        return self._followed((*kept, *([follow] if follow is not None else [])))

    def follows(self, others: Iterable[str]) -> bool:
        """Whether something was said of how it follows just these streams."""
        return {*others} - {self.name} in map(self._others, self.stream.timing.follows)

    def without(self, other: str) -> Input:
        """The same, once another stream is gone."""
        left = (
            replace(one, streams=tuple(name for name in one.streams if name != other))
            for one in self.stream.timing.follows
        )
        return self._followed(tuple(one for one in left if self._others(one)))

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.info.name

    def _others(self, follow: Follow) -> set[str]:
        return {*follow.streams} - {self.name}

    def _followed(self, follows: tuple[Follow, ...]) -> Input:
        return replace(self, stream=self._with(replace(self.stream.timing, follows=follows)))

    def _with(self, timing: Timing) -> BoundedStream | LiveStream:
        return replace(self.stream, timing=timing)

    @property
    def is_pushed(self) -> bool:
        """Whether a program pushes its rows."""
        return self.is_live and self.frame is None and self.followed is None

    def describe(self) -> str:
        """What a durable store remembers of it, to refuse a run over another input.

        What is declared about the time of a stream that never ends may change while it is read.
        """
        origin = self.origin
        if not origin and isinstance(self.stream, BoundedStream):
            origin = f"table {digest_of_rows(self.stream.source)}"
        column = f"ARRIVAL AS {self.info.timestamp}" if self.info.by_arrival else self.info.timestamp
        changes = "" if self.stream.changes is None else f" {self.stream.changes.describe()}"
        timed = f"{origin} {self.stream.schema}{changes} by {column}"
        return timed if self.is_live else f"{timed}, {self.stream.timing.describe()}"

    def feed(self, folder: Path, epoch_rows: int, epoch_bytes: int, wake: Callable[[], None]) -> Feed:
        """What brings the rows of a live stream.

        Args:
            folder: the store, or a temporary folder; rows or Spark's log are kept in it.
            epoch_rows: how many rows an epoch takes of it, if it has no limit of its own.
            epoch_bytes: how many bytes of pushed rows an epoch takes.
            wake: called when something has come.

        Raises:
            StoreError: there is no room for them in the folder.
        """
        assert isinstance(self.stream, LiveStream)
        place = stream_folder(folder, self.info.name)
        try:
            make_inside(folder, f"streams/{place.name}")
        except OSError as error:
            raise cannot_write(place, error) from error
        if self.frame is not None:
            checkpoint = inside(place, "checkpoint")
            columns, ahead = self.stream.columns, may_read_ahead(self.frame)
            files = partial(file_batches, self.frame, columns.given, checkpoint=checkpoint)
            return SparkFeed(
                *(self.info.name, self.frame, checkpoint, wake), ahead=ahead, files=files, computed=columns
            )
        rows = self.max_rows or epoch_rows
        match self.followed:
            case Folder():
                return FolderFeed(self.info.name, self.followed, rows, epoch_bytes, wake)
            case Topic():
                return TopicFeed(self.info.name, self.followed, rows, epoch_bytes, wake)
            case None:
                pass
            case pull:
                return PullFeed(self.info.name, pull, place, rows, epoch_bytes, wake)
        return PushFeed(self.info.name, self.stream, place, rows, epoch_bytes, self.overflow, wake)


def system_feed(kind: SystemStream, folder: Path, pace: Pace) -> SystemFeed:
    """What brings the rows in which a run describes itself.

    Args:
        kind: which of the streams.
        folder: the store, or a temporary folder; rows are kept in it until they are read.
        pace: when the rows of the run's streams may cause an epoch.
    """
    place = stream_folder(folder, kind.full_name)
    return SystemFeed(kind, SYSTEM_STREAMS[kind.full_name], place, pace)


def stream_folder(folder: Path, stream: str) -> Path:
    """Where a store keeps what belongs to a live stream, below the folder in which the run lies."""
    return inside(folder, f"streams/{file_name(stream)}")


@dataclass
class TemporaryFolders:
    """Folders for tables that were handed over in memory; they go when the database is closed."""

    _folders: list[tempfile.TemporaryDirectory[str]] = field(default_factory=list)

    def new(self) -> Path:
        """A new, empty folder."""
        folder = tempfile.TemporaryDirectory(prefix="input-", dir=private_folder())
        self._folders.append(folder)
        return Path(folder.name)

    def close(self) -> None:
        """Remove them all."""
        while self._folders:
            self._folders.pop().cleanup()


def declared(statement: CreateStream, base: Path, policy: Policy, read_stream: Callable[..., Any]) -> Input:
    """The input that a CREATE STREAM names.

    Args:
        statement: the statement.
        base: the folder that relative paths start from.
        policy: what the statement may reach.
        read_stream: `(format, options, schema)` to a streaming data frame, for Spark's own formats.

    Raises:
        PolicyError: the policy does not allow it; like every error, it has the statement's position.
        UserError: the input cannot be read.
    """
    options = dict(statement.options)
    try:
        policy.check_source(statement)
        max_rows = _row_limit(options)
        if statement.format in FILE_FORMATS and is_followed(options):
            return _followed(statement, options, max_rows, base, policy)
        if statement.format in FORMATS and statement.format != PUSH:
            named = {column.name.lower() for column in statement.computed}
            timed = statement.timestamp
            column = timed if isinstance(timed, str) and timed.lower() not in named else None
            given = revealed(options)
            source = open_source(
                *(statement.format, given, statement.columns, column, statement.name, base, policy.folders),
                records=statement.records,
                columns_above="",
            )
            source = _with_computed(statement, source.schema).over(source)
            info = describe_stream(statement, source.schema)
            timing = timing_of(statement.time, info, comes_now=False)
            bounded = BoundedStream(source, info.timestamp, timing, max_rows, info.changes)
            origin = origin_of(statement.format, options, base)
            return Input(info, bounded, None, max_rows, statement.time, origin=origin)
        if statement.format == PUSH:
            return _pushed(statement, options, max_rows)
        if is_topic(statement.format, statement.options):
            return _of_topic(statement, options, max_rows, base, policy)
        if statement.format == WEB:
            return _of_web(statement, options, max_rows)
        options = revealed(policy.spark_options(options, base))
        frame = _hiding(options, lambda: read_stream(statement.format, options, statement.columns))
        columns = _with_computed(statement, statement.columns or _schema_of(frame))
        info = describe_stream(statement, columns.schema)
        origin = _spark_origin(statement.format, options)
        now = statement.format == "kafka"
        timing = timing_of(statement.time, info, comes_now=now, in_batches=True)
        live = LiveStream(columns.schema, info.timestamp, timing, info.changes, computed=columns)
        return Input(info, live, frame, max_rows, statement.time, now, origin)
    except UserError as error:
        error.position = error.position or statement.position
        raise


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


def in_memory(
    name: str,
    data: Any,
    said: Said,
    disorder: Length | None,
    folders: TemporaryFolders,
) -> Input:
    """The input that a table or a data frame is.

    Columns of types that streams do not have are left out with a warning.

    Args:
        name: the stream's.
        data: the table.
        said: how its rows say when they are valid.
        disorder: how much older than the newest row a row may be.
        folders: where a table is kept that was handed over.

    Raises:
        UserError: the data is not a table, or the timestamp is missing.
    """
    if getattr(data, "isStreaming", False):
        schema = _schema_of(data)
        info = said.info(name, schema)
        clauses = TimeClauses(disorder_of(disorder, info.domain))
        timing = timing_of(clauses, info, comes_now=False)
        live = LiveStream(schema, info.timestamp, timing, info.changes)
        return Input(info, live, data, clauses=clauses, origin="stream of Spark's")
    if hasattr(data, "orderBy"):
        schema = _schema_of(data)
        timed = said.info(name, schema).timestamp
        data = _in_order(data, schema.names, sorted(schema.names, key=lambda name: name != timed))
    path = stored_table(name, to_arrow_table(data), folders)
    column = None if isinstance(said.timestamp, ByArrival) else said.timestamp
    source = open_source("arrow", {"path": str(path)}, None, column, name, path.parent)
    info = said.info(name, source.schema)
    clauses = TimeClauses(disorder_of(disorder, info.domain))
    timing = timing_of(clauses, info, comes_now=False)
    stream = BoundedStream(source, info.timestamp, timing, changes=info.changes)
    return Input(info, stream, clauses=clauses)


def stream_of_file(name: str, path: str | Path, timestamp: str | ByArrival) -> Input:
    """The input that a file is.

    Raises:
        UserError: it is not of a known kind, cannot be read, or the timestamp is missing.
    """
    form, options = format_of(path), {"path": str(path)}
    column = None if isinstance(timestamp, ByArrival) else timestamp
    source = open_source(form, options, None, column, name, Path.cwd(), columns_above="")
    info = Said(timestamp).info(name, source.schema)
    timing = timing_of(NOTHING_SAID, info, comes_now=False)
    stream = BoundedStream(source, info.timestamp, timing)
    return Input(info, stream, origin=origin_of(form, options, Path.cwd()))


def format_of(path: str | Path) -> str:
    """The format of a file by the ending of its name.

    Raises:
        UserError: it is not a known one.
    """
    form = without_compression(Path(path)).suffix.removeprefix(".").lower()
    if form not in FILE_FORMATS:
        raise UserError(
            f"{path} is not a file of a known kind",
            hint="name a file that ends with ." + ", .".join(FILE_FORMATS) + ", or give a table",
        )
    return form


def stored_table(name: str, table: pa.Table, folders: TemporaryFolders) -> Path:
    """A file with the columns of a table that a stream or a relation can have.

    Args:
        name: of the stream or the relation, for the warning that columns are left out.
        table: the table.
        folders: where the file is.
    """
    # Chosen here, where the table has the name that the user knows it by.
    chosen = readable_schema(table.schema, name).names
    path = folders.new() / "rows.arrow"
    write_arrow(table.select([table.column_names.index(column) for column in chosen]), path)
    return path


def sorted_rows(frame: Any, wanted: Collection[str] | None = None) -> pa.Table:
    """The rows of a bounded Spark frame by all columns that a relation can have.

    Args:
        frame: it.
        wanted: the columns alone that are wanted, in lower case; all if None.
    """
    if wanted is not None:
        frame = frame.select(*(_quoted(name) for name in frame.columns if name.lower() in wanted))
    names = _schema_of(frame).names
    return _in_order(frame, names, names)


_UNORDERED: Final = "__text_of_"
"""Before the number of a column that Spark cannot order by, and whose text it orders by."""


def _in_order(frame: Any, names: Sequence[str], order: Sequence[str]) -> pa.Table:
    """The columns of a bounded Spark frame, its rows ordered by all of them.

    A run that goes on has to meet the rows in the order in which it has met them before.
    """
    chosen = frame.select(*map(_quoted, names))
    # Spark does not order by MAPs.
    maps = [name for name, dtype in chosen.dtypes if "map<" in dtype]
    keys = {name: f"{_UNORDERED}{place}" for place, name in enumerate(maps)}
    texts = (f"to_json({_quoted(name)}) AS {key}" for name, key in keys.items())
    ordered = chosen.selectExpr("*", *texts).orderBy(*(_quoted(keys.get(name, name)) for name in order))
    return to_arrow_table(ordered.drop(*keys.values()))


def _quoted(name: str) -> str:
    """A column's name as Spark takes it whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def _followed(
    statement: CreateStream, options: dict[str, str], max_rows: int | None, base: Path, policy: Policy
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
        found = open_source(
            *(statement.format, {**of_files, "path": label}, columns.given, timed, statement.name, base),
            policy.folders,
            records=statement.records,
            columns_above=above,
        )
        return columns.over(found)

    folder = open_folder(given, base, policy.folders, columns.schema, opened)
    live = LiveStream(
        columns.schema, info.timestamp, timing_of(statement.time, info, comes_now=False), info.changes
    )
    origin = origin_of(statement.format, {**of_files, "follow": "true"}, base)
    return Input(info, live, None, max_rows, statement.time, origin=origin, followed=folder)


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
    topic = _hiding(given, lambda: open_topic(given, columns, statement.records, base, policy.folders))
    timing = timing_of(statement.time, info, comes_now=True)
    live = LiveStream(columns.schema, info.timestamp, timing, info.changes)
    # The brokers may be others when it is read on, and secrets are in no store.
    origin = f"topic {topic.access.topic!r} as {options.get('format', 'json')}"
    return Input(info, live, None, max_rows, statement.time, True, origin, followed=topic)


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
    if options:
        raise LanguageError(f"push has no option {next(iter(options))}", hint=f"it has {_LIMIT}")
    columns = _with_computed(statement, statement.columns)
    info = describe_stream(statement, columns.schema)
    timing = timing_of(statement.time, info, comes_now=True)
    live = LiveStream(columns.schema, info.timestamp, timing, info.changes, computed=columns)
    return Input(info, live, None, max_rows, statement.time, True, PUSH)


def origin_of(format: str, options: Mapping[str, str], base: Path) -> str:
    """What one of our own formats reads, whatever folder its path is relative to."""
    told = {name: value for name, value in options.items() if name not in ACCOUNT_OPTIONS}
    if "path" in told and not is_remote(told["path"]):
        told["path"] = str((base / plain_path(told["path"])).resolve())
    return " ".join([format, *(f"{name}={value!r}" for name, value in sorted(told.items()))])


_MAY_CHANGE: Final = ("kafka.", "max", "min")
"""How options of Spark's sources begin that say where a server is and how much a batch takes."""


def _spark_origin(format: str, options: Mapping[str, str]) -> str:
    """What one of Spark's formats reads, as a digest; another password reads the same."""
    told = {name: value for name, value in open_options(options).items() if not name.startswith(_MAY_CHANGE)}
    return f"{format} {hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()[:16]}"


def _row_limit(options: dict[str, str]) -> int | None:
    text = options.pop(_LIMIT, None)
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"{_LIMIT} must be a positive number, not '{text}'")
    return int(text)


def _schema_of(frame: Any) -> Schema:
    # Loaded only where a Spark frame is at hand, so that everything else works without Spark.
    schema: Schema = importlib.import_module("headrace.runtime.spark.types").schema_of(frame)
    return schema
