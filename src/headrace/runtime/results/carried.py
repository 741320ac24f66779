"""What goes on holding of results that are no longer kept: folded into a file per epoch that removes some.

A row may have begun in an epoch whose results are removed, and hold for ever. So when results are removed,
the elements that they released are folded: what ends at or before a boundary is left out, what begins before
it begins at it, and equal elements are added up. From the boundary on, the history is what it was.

The boundary is the last instant that was final before the first epoch that is kept in full. Elements that
later epochs release begin above it, since none begins below the heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headrace.elements import Batch, concat, decode, encode
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import RunPart
from headrace.runtime.journal.records import Carried, EpochResults
from headrace.runtime.journal.retention import whole_from
from headrace.runtime.results.release import Release
from headrace.runtime.store.segments import SegmentWriter, Store, read_part
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY


def carry_on(
    queries: Mapping[str, tuple[Schema, int]],
    store: Store,
    results: Sequence[EpochResults],
    oldest: int,
    name: str,
) -> EpochResults:
    """The last of some results with what older ones leave behind that are about to be removed.

    Args:
        queries: the columns of those that are answered and the epoch that they began with, by name.
        store: where results are.
        results: those that are kept so far, in order and without gaps, and that of the epoch that is about to
            be committed.
        oldest: the oldest epoch that is kept from now on.
        name: that of the file for what is carried.
    """
    *before, last = results
    known = before[-1].carried if before else {}
    writer = SegmentWriter(store, name)
    carried = {}
    for query in last.heartbeats:
        schema, start = queries[query]
        answered = [part for part in results if part.epoch >= start and query in part.heartbeats]
        found = _fold(query, schema, store, answered, oldest, known.get(query), writer)
        if found is not None:
            carried[query] = found
    writer.close()
    return replace(last, carried=carried)


def release_of(release: Release, query: str, store: Store, part: EpochResults) -> Batch:
    """What an epoch releases of a query's answer after those before it, in order of `ts`."""
    return release.next(part.epoch, part.reach(query), *written(query, store, part))


def written(query: str, store: Store, part: EpochResults) -> tuple[list[Batch], list[Batch]]:
    """The elements that an epoch wrote of a query's answer, and those of them that count at once."""
    found: tuple[list[Batch], list[Batch]] = [], []
    for ref in part.results.get(query, ()):
        found[ref.at_once].append(decode(read_part(store, ref.part)).slice(ref.start, ref.rows))
    return found


def read_carried(schema: Schema, store: Store, carried: Carried | None) -> Batch:
    """The elements that are carried; none if nothing is."""
    if carried is None or carried.part is None:
        return concat(schema, [])
    return decode(read_part(store, carried.part))


def _fold(
    query: str,
    schema: Schema,
    store: Store,
    epochs: Sequence[EpochResults],
    oldest: int,
    known: Carried | None,
    writer: SegmentWriter,
) -> Carried | None:
    """What is carried of a query when results are removed."""
    first = whole_from(query, [part for part in epochs if part.epoch >= oldest])
    begin = whole_from(query, epochs) if known is None else known.first
    folded = [part for part in epochs if part.epoch < first]
    if first <= begin or not folded:
        return known
    boundary = _boundary(query, folded, known)
    release, parts = Release(schema), [read_carried(schema, store, known)]
    for part in folded:
        batch = release_of(release, query, store, part)
        if part.epoch >= begin:
            parts.append(_after(batch, boundary))
    rest = netted(_after(concat(schema, parts), boundary))
    return Carried(first, boundary, _written(rest, writer))


def _boundary(query: str, folded: Sequence[EpochResults], known: Carried | None) -> int:
    """The first instant about which something is known; the answer is final there, even if it has ended."""
    heartbeat = folded[-1].heartbeats[query]
    if heartbeat == BEGINNING:
        return BEGINNING
    if heartbeat < INFINITY:
        return heartbeat - 1
    latest = (ref.latest for part in folded for ref in part.results.get(query, ()))
    return max(BEGINNING if known is None else known.boundary, *latest, BEGINNING)


def _after(batch: Batch, boundary: int) -> Batch:
    """The part of the batch that says something about instants from a boundary on."""
    rest = batch.filter(batch.te > boundary)
    return Batch(rest.payload, np.maximum(rest.ts, boundary), rest.te, rest.w)


def held_from(batch: Batch, instant: int) -> Batch:
    """What elements say about the instants from one on, with equal elements added up."""
    return netted(_after(batch, instant))


def _written(batch: Batch, writer: SegmentWriter) -> RunPart | None:
    return writer.add(encode(batch)) if len(batch) else None
