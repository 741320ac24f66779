"""Streams whose rows are valid for as long as they say, and may take others back.

The content is that of the rows that add, less that of those that take back, which takes nothing back where
nothing is (`headrace.algebra.nodes.Finalize`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.algebra.nodes import EventSource, Finalize, Plan
from headrace.schema import Schema
from headrace.time import TimeDomain

ADDITIONS: Final = (
    *("+", "+I", "+U", "I", "INSERT", "C", "CREATE", "R", "READ"),
    *("UPDATE_AFTER", "UPDATE_POSTIMAGE"),
)
"""The words that add a row, in upper case: SQL's, Flink's, Debezium's and those of Delta tables."""

WITHDRAWALS: Final = ("-", "-D", "-U", "D", "DELETE", "RETRACT", "UPDATE_BEFORE", "UPDATE_PREIMAGE")
"""The words that take a row back, in upper case."""

NOTHING_TAKEN_BACK: Final = "it takes back a row that is not there"
"""Why a correction is a dead letter."""

CEDR: Final = ("vs", "ve", "type", "vnewe")
"""The columns of CEDR's physical streams: begin and end of an event, what a row is, and the new end."""

PROMISE: Final = "CTI"
"""What a row is that says that no later change begins before its end, in upper case."""

COUNTED: Final = "EXTERNALCTI"
"""What a row is that says how many changes begin from its begin to before its end, in upper case."""


@dataclass(frozen=True)
class Events:
    """How the rows of a stream say when they are valid, and what they take back.

    Attributes:
        lasting: whether they are valid from their timestamp on until their end, instead of for that instant.
        ends: the column that ends them, or None where none of them ends.
        change: the column that says whether a row adds or takes back: one of the words above, or so many
            times, where a negative number takes back; None where all rows add.
        version: the column that numbers what was written together, or None; it is not a part of the rows.
        shortened: the column with the new end of a row that is taken back from then on, or None. Such a
            change has the timestamp of the row that it shortens, which then is a part of both.
        counts: the column with the counts of external CTIs, or None without such.
    """

    lasting: bool = False
    ends: str | None = None
    change: str | None = None
    version: str | None = None
    shortened: str | None = None
    counts: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All that is read of a row besides its timestamp."""
        return tuple(name for name in (self.ends, self.change, self.shortened) if name is not None)

    def describe(self) -> str:
        """What a durable store remembers of it."""
        said = {
            "changes": self.change,
            "to": self.ends,
            "version": self.version,
            "shortened": self.shortened,
            "counts": self.counts,
        }
        texts = [f"{name} {value}" for name, value in said.items() if value is not None]
        return ", ".join([*(["valid from"] if self.lasting else []), *texts])


def event_schema(schema: Schema, timestamp: str, events: Events) -> Schema:
    """The columns of the stream: where rows are taken back, those that a row and its correction share.

    Args:
        schema: the columns that its rows come with.
        timestamp: the one it is timed by.
        events: what else of them says when rows are valid.
    """
    if events.change is None:
        return schema
    apart = {events.change, events.version, events.shortened, events.counts}
    if events.lasting:
        apart |= {events.ends} if events.shortened is not None else {timestamp, events.ends}
    return schema.select(tuple(place for place, name in enumerate(schema.names) if name not in apart))


def events_of(name: str, schema: Schema, timestamp: str, domain: TimeDomain, events: Events) -> Plan:
    """The plan of a stream.

    Args:
        name: the stream's.
        schema: the columns that its rows come with.
        timestamp: the one it is timed by.
        domain: what its instants count.
        events: what else of them says when rows are valid.
    """
    read = event_schema(schema, timestamp, events)
    signed = events.change is not None
    leaf = EventSource(name, read, timestamp, domain, events.lasting, events.ends, signed)
    return Finalize(leaf) if signed else leaf
