"""The input of the benchmarks: bids and auctions of NEXMark in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.workloads.nexmark import TABLES, Nexmark, generate

EVENTS = 5_434_783
"""Of these 5,000,000 are bids, but for one."""


def write_bids(
    folder: Path,
    events: int,
    files: int = 8,
    seed: int = 1,
    rate: int = 10_000,
    table: str = "bid",
    *,
    milliseconds: bool = False,
) -> int:
    """Write the bids of so many NEXMark events to Parquet files, in order of time; how many bids they are.

    Spark takes the files in order of their modification times, so these are set a second apart.

    Args:
        folder: it exists.
        events: of all kinds.
        files: in how many files.
        seed: of the generator.
        rate: events per second of event time.
        table: another of NEXMark's tables.
        milliseconds: whether timestamps are cut to whole ones.
    """
    spec = Nexmark(events, seed=seed, rate=rate)
    rows = 0
    for number in range(files):
        first, last = (events * place // files for place in (number, number + 1))
        bids = generate(spec, table, first, last, columns_of(table))
        if milliseconds:
            place = bids.schema.get_field_index("ts")
            whole = pc.floor_temporal(bids["ts"], unit="millisecond")
            bids = bids.set_column(place, bids.schema.field(place), whole)
        path = folder / f"{table}-{number:04}.parquet"
        with pq.ParquetWriter(path, bids.schema) as writer:
            writer.write_batch(bids)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        rows += bids.num_rows
    return rows


def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table that are written: all but the long texts, which none of the queries reads."""
    return tuple(name for name in TABLES[table].names if name not in ("url", "extra"))


def auctions_of(bids: Path) -> Path:
    """Where the auctions lie that belong to a folder of bids."""
    return bids.with_name("auction")


def few_of(bids: Path) -> Path:
    """Where the same bids lie, on few auctions."""
    return bids.with_name("few")


def rows_of(folder: Path) -> int:
    """The rows of all Parquet files of a folder."""
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def prepare(folder: Path, events: int, files: int = 50) -> Path:
    """Write bids, auctions and the bids on few auctions below a folder, where it is not there; the bids."""
    bids = folder / "bid"
    if not folder.exists():
        for path in (bids, auctions_of(bids)):
            path.mkdir(parents=True)
            write_bids(path, events, files, table=path.name)
        _write_few(bids, few_of(bids))
    return bids


def _write_few(bids: Path, few: Path, keys: int = 100) -> None:
    """Copy bids, with so many auctions, all of them there from the first to the last."""
    few.mkdir()
    for path in sorted(bids.glob("*.parquet")):
        table = pq.read_table(path)
        auctions = pa.array(np.asarray(table["auction"]) * 7919 % 1_000_003 % keys)
        place = table.schema.get_field_index("auction")
        pq.write_table(table.set_column(place, "auction", auctions), few / path.name)


def write_columns(folder: Path, names: Sequence[str], columns: Path) -> None:
    """Write columns of a folder's Parquet files as `PreloadedRows.java` wants them.

    Args:
        folder: with Parquet files, read in the order of their names.
        names: the columns; texts, numbers and timestamps in whole milliseconds.
        columns: the folder to write to; it does not exist.
    """
    columns.mkdir(parents=True)
    table = pq.read_table(sorted(folder.glob("*.parquet")), columns=list(names))
    for field in table.schema:
        values = table[field.name].combine_chunks()
        if pa.types.is_string(field.type):
            texts = values.dictionary_encode()
            (columns / f"{field.name}.words").write_text("\n".join(texts.dictionary.to_pylist()))
            values = texts.indices
        elif pa.types.is_timestamp(field.type):
            values = values.cast(pa.timestamp("ms", field.type.tz)).cast(pa.int64())
        np.asarray(values).astype("<i8").tofile(columns / f"{field.name}.longs")
