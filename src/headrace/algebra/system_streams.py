"""The streams in which a run describes itself: what they are called, and which columns they have.

Their names have two parts, such as `headrace.epochs`, so that no stream of a user's has one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Field, Schema

PREFIX: Final = "headrace"
"""The first part of their names."""

NOTED_AT: Final = "noted_at"
"""The column that they are timed by: when an epoch took the row."""


class SystemStream(Enum):
    """A stream in which a run describes itself; the value is the second part of its name."""

    EPOCHS = "epochs"
    STREAMS = "streams"
    QUERIES = "queries"
    OPERATORS = "operators"
    DEAD_LETTERS = "dead_letters"
    SHEDDING = "shedding"
    TUNINGS = "tunings"
    LANES = "lanes"

    @property
    def full_name(self) -> str:
        """What it is called in the catalog."""
        return f"{PREFIX}.{self.value}"

    @property
    def schema(self) -> Schema:
        """Its columns, without the one that it is timed by."""
        return _SCHEMAS[self]

    @property
    def timed_schema(self) -> Schema:
        """Its columns."""
        return Schema((*self.schema, Field(NOTED_AT, TIMESTAMP)))


def system_stream(name: str) -> SystemStream | None:
    """The stream of that name, whatever its case; None where it is another one."""
    return _BY_NAME.get(name.lower())


def _schema(**columns: pa.DataType) -> Schema:
    return Schema(tuple(Field(name, dtype) for name, dtype in columns.items()))


_SCHEMAS: Final[Mapping[SystemStream, Schema]] = MappingProxyType(
    {
        SystemStream.EPOCHS: _schema(
            epoch=BIGINT,
            taken_at=TIMESTAMP,
            seconds=DOUBLE,
            rows_in=BIGINT,
            late=BIGINT,
            dead_letters=BIGINT,
            changes=BIGINT,
            state_rows=BIGINT,
            state_bytes=BIGINT,
        ),
        SystemStream.STREAMS: _schema(
            epoch=BIGINT,
            stream=STRING,
            rows_in=BIGINT,
            late=BIGINT,
            rejected=BIGINT,
            dropped=BIGINT,
            rate=DOUBLE,
            heartbeat=BIGINT,
            latest=BIGINT,
            lag=BIGINT,
            waiting=BIGINT,
            ended=BOOLEAN,
        ),
        SystemStream.QUERIES: _schema(
            epoch=BIGINT,
            query=STRING,
            changes=BIGINT,
            heartbeat=BIGINT,
            horizon=BIGINT,
            lag=BIGINT,
            held_by=STRING,
            failed=STRING,
        ),
        SystemStream.OPERATORS: _schema(
            epoch=BIGINT,
            operator=BIGINT,
            what=STRING,
            identity=STRING,
            rows_in=BIGINT,
            rows_out=BIGINT,
            seconds=DOUBLE,
            state_rows=BIGINT,
            state_bytes=BIGINT,
            waiting=BIGINT,
            heartbeat=BIGINT,
        ),
        SystemStream.DEAD_LETTERS: _schema(
            epoch=BIGINT, stream=STRING, query=STRING, reason=STRING, place=STRING, row_text=STRING
        ),
        SystemStream.SHEDDING: _schema(
            epoch=BIGINT,
            streams=STRING,
            loss=STRING,
            share=DOUBLE,
            utility=DOUBLE,
            least=DOUBLE,
            wanted=DOUBLE,
            needed=DOUBLE,
            behind=DOUBLE,
            why=STRING,
        ),
        SystemStream.TUNINGS: _schema(
            epoch=BIGINT,
            streams=STRING,
            kind=STRING,
            smallest=BIGINT,
            largest=BIGINT,
            size=BIGINT,
            since=BIGINT,
            why=STRING,
        ),
        SystemStream.LANES: _schema(
            epoch=BIGINT,
            lane=BIGINT,
            queries=STRING,
            weight=DOUBLE,
            due=DOUBLE,
            had=DOUBLE,
            waiting=BIGINT,
            behind=DOUBLE,
            rows_in=BIGINT,
            seconds=DOUBLE,
            utility=DOUBLE,
        ),
    }
)
_BY_NAME: Final = {stream.full_name: stream for stream in SystemStream}
