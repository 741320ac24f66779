"""The inputs of a database: what a stream is read from, and how rows get into it."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from headrace.algebra.changes import Changes
from headrace.algebra.events import Events
from headrace.algebra.letters import letters_schema, noted_at
from headrace.algebra.system_streams import NOTED_AT, SystemStream
from headrace.engine.access.secrets import hidden
from headrace.engine.inputs.corrections import Said
from headrace.engine.inputs.signatures import Signature
from headrace.engine.inputs.times import Length, disorder_of, retain_of, timing_of
from headrace.errors import UserError, warn
from headrace.heartbeats.timing import BY_ARRIVAL, Follow, Timing
from headrace.language.catalog import RelationInfo, StreamInfo
from headrace.language.statements.formats import FILE_FORMATS, format_of_ending
from headrace.language.statements.overflow import Overflow
from headrace.language.statements.streams import NOTHING_SAID, ByArrival, TimeClauses
from headrace.runtime.intake.feed import Feed
from headrace.runtime.intake.folder import Folder
from headrace.runtime.intake.folder_feed import FolderFeed
from headrace.runtime.intake.pull_feed import PullFeed
from headrace.runtime.intake.pulling import Pull
from headrace.runtime.intake.push_feed import PushFeed
from headrace.runtime.intake.streams import BoundedStream, LetterStream, LiveStream
from headrace.runtime.intake.system_feed import Pace, SystemFeed
from headrace.runtime.intake.topic import Topic
from headrace.runtime.intake.topic_feed import TopicFeed
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.composed.tables import digest_of_rows, to_arrow_table, write_arrow
from headrace.runtime.sources.files.patterns import plain_path
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS, is_remote
from headrace.runtime.sources.rows.widening import readable_schema
from headrace.runtime.sources.text.coding import without_compression
from headrace.runtime.spark.feed import SparkFeed, may_read_ahead
from headrace.runtime.spark.scans import file_batches
from headrace.runtime.store.paths import file_name, inside, make_inside
from headrace.runtime.store.segments import cannot_write
from headrace.runtime.store.temporary import private_folder
from headrace.schema import Field, Schema

SYSTEM_STREAMS: Final[Mapping[str, LiveStream]] = MappingProxyType(
    {kind.full_name: LiveStream(kind.schema, NOTED_AT, BY_ARRIVAL) for kind in SystemStream}
)
"""The streams in which a run describes itself, by name."""


@dataclass(frozen=True)
class Input:
    """A stream as the engine keeps it.

    Attributes:
        info: its entry in the catalog.
        stream: what a run reads.
        frame: the streaming data frame it comes from, or None.
        followed: the folder or the Kafka topic that it follows, or what its rows are pulled from; or None.
        again: declares it with other columns than those that its rows come with; None where a program has
            handed it over, or its columns are those of what it is read from.
        signature: how rows are signed that come without a key of the server; None if they need one.
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
    signature: Signature | None = None
    again: Callable[[Schema], Input] | None = field(default=None, compare=False, repr=False)

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

    def widened(self, columns: Iterable[Field]) -> Input | None:
        """The same, whose rows have further columns; None where it cannot have any.

        Raises:
            UserError: it has one of the name, or the columns do not fit what it is read from.
        """
        if self.again is None or not isinstance(self.stream, LiveStream | BoundedStream):
            return None
        known = [one for one in self.info.schema if one.name in self.info.sent.names]
        made = self.again(Schema((*known, *columns)))
        stream = replace(made.stream, timing=self.stream.timing)
        return replace(made, stream=stream, clauses=self.clauses, again=self.again)

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
    def are_several(self) -> bool:
        """Whether it is of several topics, or of those that match a pattern."""
        return isinstance(self.followed, Topic) and len(self.followed.wanted.names) != 1

    @property
    def is_topic(self) -> bool:
        """Whether its rows are the messages of a topic, of one partition after the other."""
        return isinstance(self.followed, Topic)

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
        schema = schema_of_frame(data)
        info = said.info(name, schema)
        warn_of_ties(name, info.changes)
        clauses = TimeClauses(disorder_of(disorder, info.domain))
        timing = timing_of(clauses, info, comes_now=False)
        live = LiveStream(schema, info.timestamp, timing, info.changes)
        return Input(info, live, data, clauses=clauses, origin="stream of Spark's")
    if hasattr(data, "orderBy"):
        schema = schema_of_frame(data)
        info = said.info(name, schema)
        warn_of_ties(name, info.changes)
        timed = info.timestamp
        data = _in_order(data, schema.names, sorted(schema.names, key=lambda name: name != timed))
    column = None if isinstance(said.timestamp, ByArrival) else said.timestamp
    source = stored_table(name, to_arrow_table(data), folders, timestamp=column)
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
    form = format_of_ending(without_compression(Path(path)).suffix.removeprefix("."))
    if form is None:
        raise UserError(
            f"{path} is not a file of a known kind",
            hint="name a file that ends with ." + ", .".join(FILE_FORMATS) + ", or give a table",
        )
    return form


def stored_table(
    name: str,
    table: pa.Table,
    folders: TemporaryFolders,
    declared: Schema | None = None,
    timestamp: str | None = None,
) -> SplitSource:
    """The rows of a table, in a file with the columns that a stream or a relation can have.

    Args:
        name: of the stream or the relation, by which its user knows the rows.
        table: the table.
        folders: where the file is.
        declared, timestamp: as for `open_source`.

    Raises:
        SourceError: it lacks a declared column, or the timestamp.
    """
    # Chosen here, where the table has the name that the user knows it by.
    chosen = readable_schema(table.schema, name).names
    path = folders.new() / "rows.arrow"
    write_arrow(table.select([table.column_names.index(column) for column in chosen]), path)
    found: Any = open_source("arrow", {"path": str(path)}, declared, timestamp, name, path.parent)
    # Nobody knows the file.
    source: SplitSource = replace(found, parts=tuple(replace(part, label=name) for part in found.parts))
    return source


def sorted_rows(frame: Any, wanted: Collection[str] | None = None) -> pa.Table:
    """The rows of a bounded Spark frame by all columns that a relation can have.

    Args:
        frame: it.
        wanted: the columns alone that are wanted, in lower case; all if None.
    """
    if wanted is not None:
        frame = frame.select(*(_quoted(name) for name in frame.columns if name.lower() in wanted))
    names = schema_of_frame(frame).names
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


def origin_of(format: str, options: Mapping[str, str], base: Path) -> str:
    """A text for what a format of ours reads, whatever folder its path is relative to and the password."""
    told = {name: value for name, value in options.items() if name not in ACCOUNT_OPTIONS}
    if "path" in told and not is_remote(told["path"]):
        told["path"] = str((base / plain_path(told["path"])).resolve())
    return " ".join([format, *(f"{name}={hidden(value, told)!r}" for name, value in sorted(told.items()))])


def warn_of_ties(name: str, changes: Changes | Events | None) -> None:
    """Warn where nothing says which change of a key at one instant is the last: Spark gives rows in no order.

    Args:
        name: the stream's or the relation's.
        changes: what its rows change.
    """
    if isinstance(changes, Changes) and changes.version is None:
        warn(
            f"Spark gives the rows of {name} in no order: name a column by VERSION BY, for changes "
            "of one instant"
        )


def schema_of_frame(frame: Any) -> Schema:
    """The columns of a data frame of Spark's."""
    # Loaded only where a Spark frame is at hand, so that everything else works without Spark.
    schema: Schema = importlib.import_module("headrace.runtime.spark.types").schema_of(frame)
    return schema
