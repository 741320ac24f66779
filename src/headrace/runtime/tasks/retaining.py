"""The rows of streams that are kept as Parquet once they have been accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.elements import Batch
from headrace.operators.state.runs import RunPart
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.messages import EpochWork, RetainedFile
from headrace.time import BEGINNING


class RetainedRows:
    """Collects the rows that one task accepts of streams whose rows are kept.

    Args:
        work: the epoch.
    """

    def __init__(self, work: EpochWork) -> None:
        self._work = work
        self._rows: dict[str, list[pa.RecordBatch]] = {}
        self._newest: dict[str, int] = {}

    def take(self, stream: str, batch: Batch) -> None:
        """Keep the rows of a stream that are input of its queries, if it keeps them.

        Rows that were set apart once, and are taken once more, are kept by the driver, which knows which of
        them no query has had.

        Args:
            stream: its name.
            batch: the rows, with all columns.
        """
        known = self._work.streams[stream]
        if known.retained and known.replayed is None and len(batch):
            self._rows.setdefault(stream, []).append(batch.payload)
            self._newest[stream] = max(self._newest.get(stream, BEGINNING), int(batch.ts.max()))

    def write(self, name: str) -> Mapping[str, RetainedFile]:
        """Write them; where they are, by stream.

        Args:
            name: what the names of the files begin with.

        Raises:
            StoreError: a file cannot be written.
        """
        found = {}
        for stream, batches in self._rows.items():
            rows = pa.Table.from_batches(batches)
            part = write_retained(self._work.store, name, stream, rows)
            epoch = self._work.epoch
            found[stream] = RetainedFile(part, rows.num_rows, epoch, epoch, self._newest[stream])
        return found


def write_retained(store: Store, name: str, stream: str, rows: pa.Table) -> RunPart:
    """Write rows of a stream as Parquet to a file of their own; where they are.

    Args:
        store: where.
        name: what the file's name begins with.
        stream: the stream.
        rows: the rows.

    Raises:
        StoreError: the file cannot be written.
    """
    sink = pa.BufferOutputStream()
    # Without dictionaries it takes a third less time, and no more bytes: what is alike is compressed anyway.
    pq.write_table(rows, sink, compression="zstd", compression_level=1, use_dictionary=False)
    digest = hashlib.sha256(stream.encode()).hexdigest()[:16]
    writer = SegmentWriter(store, f"{name}-retained-{digest}")
    part = writer.add(sink.getvalue())
    writer.close()
    return part
