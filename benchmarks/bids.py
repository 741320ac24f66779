"""The input of the benchmarks: bids and auctions of NEXMark in Parquet files.

The bids also have hostile forms, `FORMS`: the same rows with other keys, types, widths or times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

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


def _with(bids: pa.Table, **columns: pa.Array) -> pa.Table:
    """The bids with other columns in the place of those of the same names."""
    for name, values in columns.items():
        bids = bids.set_column(bids.schema.get_field_index(name), name, values)
    return bids


def _with_keys(bids: pa.Table, auctions: np.ndarray, bidders: np.ndarray) -> pa.Table:
    return _with(bids, auction=pa.array(auctions), bidder=pa.array(bidders))


def _as_they_are(bids: pa.Table, _: np.random.Generator) -> pa.Table:
    return bids


def _random_keys(number: int) -> Form:
    def form(bids: pa.Table, random: np.random.Generator) -> pa.Table:
        return _with_keys(bids, *(random.integers(0, number, len(bids)) for _ in range(2)))

    return form


def _one_hot_key(bids: pa.Table, random: np.random.Generator) -> pa.Table:
    hot = random.random(len(bids)) < 0.5
    return _with_keys(bids, *(np.where(hot, 0, bids[name]) for name in _KEYS))


def _unique_keys(bids: pa.Table, random: np.random.Generator) -> pa.Table:
    return _with_keys(bids, *(random.permutation(len(bids)) for _ in range(2)))


def _twenty_columns(bids: pa.Table, random: np.random.Generator) -> pa.Table:
    for place in range(bids.num_columns, 20):
        numbers = random.integers(0, 1_000_000, len(bids))
        values = (pa.array(numbers), pa.array(numbers / 7), pa.array(numbers).cast(pa.string()))[place % 3]
        bids = bids.append_column(f"column_{place}", values)
    return bids


def _long_texts(bids: pa.Table, _: np.random.Generator) -> pa.Table:
    start = "https://auctions.example.com/" + "/".join(["a-folder-of-auctions"] * 8)
    texts = {name: pc.binary_join_element_wise(start, bids[name].cast(pa.string()), "/") for name in _KEYS}
    return _with(bids, **texts)


def _decimals(bids: pa.Table, _: np.random.Generator) -> pa.Table:
    return _with(bids, **{name: bids[name].cast(pa.decimal128(20, 1)) for name in (*_KEYS, "price")})


def _nulls(bids: pa.Table, random: np.random.Generator) -> pa.Table:
    present = {name: pa.array(random.random(len(bids)) > 0.1) for name in (*_KEYS, "price")}
    return _with(bids, **{name: pc.if_else(there, bids[name], None) for name, there in present.items()})


def _out_of_order(bids: pa.Table, random: np.random.Generator) -> pa.Table:
    late = (random.random(len(bids)) < 0.1) * random.integers(0, DISORDER_SECONDS * 1_000_000, len(bids))
    return bids.take(pa.array(np.argsort(_instants(bids) + late, kind="stable")))


def _bursts(bids: pa.Table, _: np.random.Generator) -> pa.Table:
    whole, within = np.divmod(_instants(bids), 10_000_000)
    instants = whole * 10_000_000 + within // 1_000
    return _with(bids, ts=pa.array(instants).cast(bids["ts"].type))


def _instants(bids: pa.Table) -> np.ndarray:
    return np.asarray(bids["ts"].cast(pa.int64()))


Form = Callable[[pa.Table, np.random.Generator], pa.Table]
"""Bids, and what may be drawn at random, to bids of another form."""

_KEYS: Final = ("auction", "bidder")

DISORDER_SECONDS: Final = 5
"""So late a row of the form out of order comes at most."""

FORMS: Final[Mapping[str, Form]] = {
    "as they are": _as_they_are,
    "few keys": _random_keys(100),
    "a million keys": _random_keys(1_000_000),
    "one hot key": _one_hot_key,
    "unique keys": _unique_keys,
    "20 columns": _twenty_columns,
    "long texts": _long_texts,
    "DECIMALs": _decimals,
    "NULLs": _nulls,
    "out of order": _out_of_order,
    "bursts": _bursts,
}
"""The forms of the bids, by name.

Of keys, both auction and bidder: a hundred, a million at random, one with half of the rows, each row its own,
texts of 200 characters, DECIMALs, one in ten NULL. Besides: 20 columns; one row in ten up to five seconds
late; and the rows of ten seconds within ten milliseconds.
"""


def write_form(folder: Path, form: str, rows: int, files: int = 10) -> Path:
    """Write bids of a form, and auctions for them, below a folder; where the bids are.

    There is an auction from the first bid on it in every ten seconds, in order of time.
    """
    bids = folder / "bid"
    wanted = ("auction", "bidder", "price", "channel", "ts")
    found = generate(Nexmark(rows * 50 // 46 + 50, seed=1), "bid", 0, rows * 50 // 46 + 50, wanted)
    table = FORMS[form](pa.table(found).slice(0, rows), np.random.default_rng(1))
    places = pc.floor_temporal(table["ts"], 10, "second")
    groups = table.append_column("piece", places).group_by(["auction", "piece"], use_threads=False)
    auctions = groups.aggregate([("ts", "min"), ("bidder", "count")]).sort_by("ts_min")
    auctions = auctions.select(["auction", "bidder_count", "ts_min"]).rename_columns(["id", "seller", "ts"])
    for path, part in ((bids, table), (auctions_of(bids), auctions)):
        path.mkdir(parents=True)
        for number in range(files):
            first, last = (len(part) * place // files for place in (number, number + 1))
            pq.write_table(part.slice(first, last - first), path / f"{number:02}.parquet")
    return bids


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
