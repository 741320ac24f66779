"""Notes on queries over topics whose partitions are judged together, so that the order of reading decides."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.debezium import PARTITION
from headrace.errors import Position
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import StreamInfo
from headrace.language.notes import Note
from headrace.time import TimeDomain


def notes_on_partitions(
    topics: Mapping[str, tuple[Timing, StreamInfo, bool]], position: Position
) -> tuple[Note, ...]:
    """Which topics may have rows that are late for no other reason than that their partition was read later.

    Args:
        topics: the streams of topics that the query reads, by name: what is declared of their time, their
            columns, and whether they are of several topics.
        position: of the query.
    """
    found = []
    for name, (timing, info, are_several) in topics.items():
        if _is_judged_together(timing):
            found.append(
                Note(
                    f"rows of {name} are judged by all rows read before them: if its topic has several "
                    "partitions, those of one that is behind another one are late",
                    position,
                    _by_partition(timing, info, are_several),
                )
            )
        elif are_several and timing.per is not None and timing.per.column == PARTITION:
            found.append(
                Note(
                    f"rows of {name} are judged by the numbers of their partitions, which each of its topics "
                    "has: rows of a topic that is behind another one are late",
                    position,
                    _by_partition(timing, info, are_several),
                )
            )
    return tuple(found)


def _is_judged_together(timing: Timing) -> bool:
    """Whether a row can be late by the rows of other partitions that come before it in an epoch."""
    bounded = timing.disorder is not None or timing.rows is not None or timing.estimated is not None
    return bounded and timing.is_in_order and timing.heartbeats is None and not timing.by_cti


def _by_partition(timing: Timing, info: StreamInfo, are_several: bool) -> str:
    by = f"PER {'origin' if are_several else PARTITION} IDLE AFTER 30 SECONDS"
    if timing.disorder is None or timing.rows is not None:
        # Only a length of time may be of each partition.
        by = f"DISORDER 5{' SECONDS' * (info.domain is TimeDomain.TIMESTAMP)} {by}"
    if are_several:
        origin = f"origin AS CONCAT(_topic, '/', CAST({PARTITION} AS STRING))"
        return f"declare the columns _topic STRING, {PARTITION} BIGINT, {origin}, and write {by}"
    if info.schema.find(PARTITION) is None:
        return f"declare the column {PARTITION} BIGINT, and write {by}"
    return f"ALTER STREAM {info.name} {by} judges each row by its partition"
