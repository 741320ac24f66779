"""Any cut of a source's positions gives every row once, in order, and rejects the same rows."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.debezium import CHANGED_AT, record_columns
from headrace.language.statements.formats import ChangeRecords
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.rows import rows
from headrace.runtime.sources.rows.contract import Rejected
from headrace.runtime.sources.text import blocks
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema
from how_many import examples

SCHEMA = Schema((Field("n", BIGINT), Field("x", DOUBLE), Field("s", STRING), Field("ts", TIMESTAMP)))
COUNTS = (37, 0, 1, 60)


def table(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = [
        pa.array(numbers, BIGINT),
        pa.array([None if n % 5 == 0 else n / 4 for n in numbers], DOUBLE),
        pa.array([None if n % 7 == 0 else "é\n" * (n % 3) for n in numbers], STRING),
        pa.array([n * 1_500_000 for n in numbers], TIMESTAMP),
    ]
    return pa.table(columns, schema=SCHEMA.arrow())


def tables() -> list[pa.Table]:
    firsts = [sum(COUNTS[:place]) for place in range(len(COUNTS))]
    return [table(first, count) for first, count in zip(firsts, COUNTS, strict=True)]


def open_folder(folder: Path, form: str, **options: str) -> SplitSource:
    return open_source(form, {"path": folder.name, **options}, SCHEMA, "ts", "s", folder.parent)


def write_parquet(folder: Path) -> SplitSource:
    for place, part in enumerate(tables()):
        pq.write_table(part, folder / f"{place}.parquet", row_group_size=8)
    return open_folder(folder, "parquet")


def write_arrow(folder: Path) -> SplitSource:
    for place, part in enumerate(tables()):
        opener = pa.ipc.new_file if place % 2 else pa.ipc.new_stream
        with opener(str(folder / f"{place}.arrow"), part.schema) as writer:
            writer.write_table(part, max_chunksize=9)
    return open_folder(folder, "arrow")


def csv_text(part: pa.Table, place: int) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=("\n", "\r\n")[place % 2])
    writer.writerow(part.column_names)
    for row in part.to_pylist():
        odd = {10: "x", 20: "1e999"}.get(row["n"], row["n"])
        cells = [odd, row["x"], (row["s"] or "").replace("\n", "/"), row["ts"].isoformat()]
        writer.writerow(cells[: 3 if row["n"] == 30 else 4])
        if row["n"] == 50:
            text.write('1,2,"open,2024-01-01\n\n')
    return text.getvalue()


def write_csv(folder: Path) -> SplitSource:
    for place, part in enumerate(tables()):
        text = csv_text(part, place)
        (folder / f"{place}.csv").write_bytes((text.rstrip() if place % 3 else text).encode())
    return open_folder(folder, "csv")


def write_multiline_csv(folder: Path) -> SplitSource:
    for place, part in enumerate(tables()):
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerows([part.column_names, *([*row.values()] for row in part.to_pylist())])
        (folder / f"{place}.csv").write_text(text.getvalue(), newline="")
    return open_folder(folder, "csv", multiline="true")


def write_json(folder: Path) -> SplitSource:
    bad = ["null", '{"n": 1', '{"n": 1.5}', '{"n": 1}{"n": 2}', '{"ts": "noon"}', '{"n": 1, "n": 2}']
    good = ['{"n": 7, "x": NaN}', '{"x": Infinity, "s": "Information"}', '{"s": "\\ud83d\\ude00"}']
    for place, part in enumerate(tables()):
        lines = []
        for row in part.to_pylist():
            lines.append(json.dumps({**row, "ts": row["ts"].isoformat(), "more": [{}]}))
            lines += [(bad + good)[row["n"] % 9]] if row["n"] % 11 == 0 else []
        (folder / f"{place}.jsonl").write_text(("\r\n" if place else "\n").join(lines) + "\n" * (place % 2))
    return open_folder(folder, "json")


def write_records(folder: Path) -> SplitSource:
    bad = [
        "null",
        '{"op": "u"',
        '{"op": "t"}',
        '{"op": "c", "after": {"n": "x"}}',
        '{"op": "u", "after": {}}',
    ]
    for place, part in enumerate(tables()):
        lines = []
        for row in part.to_pylist():
            after = {**row, "ts": row["ts"].isoformat()}
            before = {**after, "n": row["n"] - 1000} if row["n"] % 3 == 0 else None
            change = {"before": before, "after": after, "op": "u" if before else "c", "source": {"ts_ms": 1}}
            lines.append(json.dumps({"schema": {}, "payload": change} if row["n"] % 2 else change))
            lines += [bad[row["n"] % 5]] if row["n"] % 11 == 0 else []
        (folder / f"{place}.jsonl").write_text("\n".join(lines) + "\n" * (place % 2))
    options, columns = {"path": folder.name}, record_columns(SCHEMA, CHANGED_AT)
    return open_source("json", options, columns, CHANGED_AT, "s", folder.parent, records=ChangeRecords.BY_ROW)


def write_text(folder: Path) -> SplitSource:
    for place, part in enumerate(tables()):
        ends = "\r\n" if place % 2 else "\n"
        text = ends.join(f"{row['n']}|{row['s']}" for row in part.to_pylist()).encode()
        (folder / f"{place}.txt").write_bytes(text.replace(b"21|", b"\xff") + b"\n" * (place % 3))
    return open_source("text", {"path": folder.name}, None, None, "s", folder.parent)


def open_nexmark(_: Path) -> SplitSource:
    options = {"events": "400", "disorder": "1 second", "table": "auction"}
    return open_source("nexmark", options, None, "ts", "s", Path())


WRITERS = [
    write_parquet,
    write_arrow,
    write_csv,
    write_multiline_csv,
    write_json,
    write_records,
    write_text,
    open_nexmark,
]


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__.partition("_")[2])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SplitSource:
    opened: SplitSource = request.param(tmp_path_factory.mktemp("source"))
    return opened


@contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks and pieces so small that every source gives many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 150)
        patch.setattr(blocks, "_SEARCH_BYTES", 7)
        patch.setattr(rows, "BATCH_ROWS", 10)
        yield


@pytest.fixture(scope="module")
def expected(source: SplitSource, read_all: Callable[..., tuple[pa.Table, list[Rejected]]]) -> object:
    return read_all(source)


@examples(10)
@given(data=st.data())
def test_any_cut_gives_every_row_once(
    source: SplitSource,
    expected: tuple[pa.Table, list[Rejected]],
    read_all: Callable[..., tuple[pa.Table, list[Rejected]]],
    data: st.DataObject,
) -> None:
    cuts = data.draw(st.lists(st.integers(0, source.size), max_size=6))
    columns = data.draw(st.permutations(source.schema.names))
    with small_blocks():
        rows, rejected = read_all(source, cuts, columns)
    assert repr(rows.to_pylist()) == repr(expected[0].select(list(columns)).to_pylist())
    assert [(row.text, row.place) for row in rejected] == [(row.text, row.place) for row in expected[1]]


def test_the_whole_is_what_was_written(
    source: SplitSource, expected: tuple[pa.Table, list[Rejected]], request: pytest.FixtureRequest
) -> None:
    rows, rejected = expected
    form = request.node.callspec.id
    if form in ("parquet", "arrow"):
        assert rows == pa.concat_tables(tables()).combine_chunks()
        assert source.rows == source.size == sum(COUNTS)
    elif form == "csv":
        bad = {10, 20, 30}
        assert rows["n"].to_pylist() == [n for n in range(sum(COUNTS)) if n not in bad]
        assert [row.place.rsplit("/", 1)[1] for row in rejected] == [
            *("0.csv:12", "0.csv:22", "0.csv:32"),
            "3.csv:15",
        ]
    elif form == "multiline_csv":
        written = pa.concat_tables(tables())
        assert rows["n"].to_pylist() == written["n"].to_pylist()
        assert rows["s"].to_pylist() == [text or None for text in written["s"].to_pylist()]
    elif form == "json":
        assert rows.filter(pa.compute.is_valid(rows["ts"])) == pa.concat_tables(tables()).combine_chunks()
        assert len(rows) == sum(COUNTS) + 3
        assert len(rejected) == 6
    elif form == "records":
        numbers = range(sum(COUNTS))
        taken_back = [n - 1000 for n in numbers if n % 3 == 0]
        assert sorted(rows["n"].to_pylist()) == sorted([*numbers, *taken_back])
        assert rows["__op"].to_pylist().count("update_before") == len(taken_back)
        # A null is a tombstone, and no record.
        assert len(rejected) == sum(n % 11 == 0 and n % 5 != 0 for n in numbers)
