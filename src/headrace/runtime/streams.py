"""Streams as a run sees them, and what an epoch takes of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.runtime.sources.contract import SplitSource
from headrace.schema import Schema


@dataclass(frozen=True)
class BoundedStream:
    """A stream that is read to its end.

    Attributes:
        source: where its rows come from.
        timestamp: the column it is timed by.
        disorder: how much older than the newest row a row may be (instants).
        max_rows: how many rows an epoch takes at the most, if not its share.
    """

    source: SplitSource
    timestamp: str
    disorder: int = 0
    max_rows: int | None = None

    @property
    def schema(self) -> Schema:
        """All its columns."""
        return self.source.schema


@dataclass(frozen=True)
class LiveStream:
    """A stream that never ends: rows are pushed, or come from a Spark streaming source.

    Attributes:
        schema: all its columns.
        timestamp: the column it is timed by.
        disorder: how much older than the newest row a row may be (instants).
    """

    schema: Schema
    timestamp: str
    disorder: int = 0


@dataclass(frozen=True)
class Intake:
    """What an epoch takes of a stream.

    Attributes:
        position: up to where the stream has been read after it, for the commit: in the source's unit, or how
            many hand-overs there have been.
        source, start, end: the stretch to read; no source where the rows come in a frame.
        frame: a Spark data frame with the rows, or None.
        ended: whether the stream has no more rows after it.
        producers: for pushed rows, per producer the last sequence number.
    """

    position: int
    source: SplitSource | None = None
    start: int = 0
    end: int = 0
    frame: object = None
    ended: bool = False
    producers: Mapping[str, int] = field(default_factory=dict)
