"""What an answer was as of an epoch that has passed, and how two such answers differ.

Results are kept epoch by epoch and never changed, so the answer as of an epoch is what the epochs up to it
say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace.elements import Batch
from headrace.errors import UserError
from headrace.history import canonical, clip, difference, snapshot
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.reader import ResultReader
from headrace.schema import TIMESTAMP
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant


def as_of_epoch(reader: ResultReader, epoch: int) -> ResultReader:
    """The answer as it was after an epoch.

    Raises:
        UserError: the epoch is not committed, was before the query, or is no longer kept.
    """
    last = reader.epochs[-1].epoch if reader.epochs else 0
    if epoch > last:
        raise UserError(
            f"epoch {epoch} of {reader.name} has not been committed",
            hint=f"the last one is {last}" if last else "wait for rows",
        )
    if epoch < reader.start:
        raise UserError(
            f"{reader.name} was not answered yet in epoch {epoch}", hint=f"it began with epoch {reader.start}"
        )
    if epoch < reader.first:
        raise UserError(
            f"what {reader.name} said in epoch {epoch} is no longer kept, only from epoch {reader.first} on",
            hint="ask for a later epoch, or keep more with retain_epochs",
        )
    return replace(reader, epochs=reader.epochs[: _place(reader.epochs, epoch)])


def epoch_at(reader: ResultReader, clock: int) -> int:
    """The last epoch that took its rows at or before an instant of the clock.

    Args:
        reader: what is known of the query.
        clock: microseconds since 1970-01-01 UTC.

    Raises:
        UserError: none did that is kept.
    """
    place = bisect_right(reader.epochs, clock, key=lambda part: part.clock)
    if place:
        return reader.epochs[place - 1].epoch
    asked = format_instant(clock, TimeDomain.TIMESTAMP)
    if not reader.epochs:
        raise UserError(f"no epoch of {reader.name} has been committed", hint="wait for rows")
    oldest = reader.epochs[0]
    since = f"epoch {oldest.epoch} of {format_instant(oldest.clock, TimeDomain.TIMESTAMP)}"
    if oldest.epoch > reader.start:
        raise UserError(
            f"what {reader.name} said at {asked} is no longer kept, only from {since} on",
            hint="ask for a later time, or keep more with retain_epochs",
        )
    raise UserError(f"{reader.name} was not answered yet at {asked}", hint=f"it began with {since}")


def epochs_of(reader: ResultReader) -> pa.Table:
    """The epochs as of which the answer can be asked for: those kept in full after which something was said.

    Returns:
        `epoch`, `taken_at` (when it took its rows, by the clock), `heartbeat`, the instant below which the
        answer was final after it, and `horizon`, that below which it was said. Of these NULL is the end of
        time, and `heartbeat` alone is NULL where nothing was final.
    """
    whole = reader.epochs[_place(reader.epochs, reader.first - 1) :]
    kept = [part for part in whole if part.reach(reader.query) > BEGINNING]
    heartbeats = np.array([reader.heartbeat_of(part) for part in kept], dtype=np.int64)
    horizons = np.array([part.reach(reader.query) for part in kept], dtype=np.int64)
    columns = {
        "epoch": pa.array([part.epoch for part in kept], pa.int64()),
        "taken_at": pa.array([part.clock for part in kept], pa.int64()).cast(TIMESTAMP),
        "heartbeat": reader.instants(np.where(heartbeats == BEGINNING, INFINITY, heartbeats)),
        "horizon": reader.instants(horizons),
    }
    return pa.table(columns)


def differences(before: ResultReader, after: ResultReader) -> pa.Table:
    """What has to be added to all that was said once, and taken from it, to make what was said another time.

    Returns:
        The payload, `valid_from`, `valid_to` and `change`: 1 where a row is added, -1 where it is taken away.
    """
    return after.signed_table(
        difference(*(canonical(clip(one.content(), one.horizon)) for one in (before, after)))
    )


def differences_at(before: ResultReader, after: ResultReader, instant: int) -> pa.Table:
    """What has to be added to one snapshot, and taken from it, to make another one of the same query.

    Args:
        before: the answer that is compared with.
        after: the answer that is compared.
        instant: of both snapshots.

    Returns:
        The payload and `change`.

    Raises:
        UserError: one of them is not final there, or no longer kept.
    """
    for reader in (before, after):
        reader.check_said(instant)
    changed = difference(_at(before, instant), _at(after, instant))
    table = after.signed_table(changed)
    *payload, _, _, change = range(table.num_columns)
    return table.select([*payload, change])


def _at(reader: ResultReader, instant: int) -> Batch:
    """The content at an instant, as elements of that instant."""
    rows = snapshot(reader.content(), instant)
    times = np.full(rows.num_rows, instant, dtype=np.int64)
    return Batch(rows, times, times + 1, np.ones(rows.num_rows, dtype=np.int64))


def _place(epochs: Sequence[EpochResults], epoch: int) -> int:
    """How many of some epochs are not after one."""
    return bisect_right(epochs, epoch, key=lambda part: part.epoch)
