import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import SourceError
from headrace.runtime.sources import Rejected, SplitSource, open_source
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.workloads.nexmark import TABLES, Nexmark, counts, generate

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]


def open_table(stream: str, declared: Schema | None = None, **options: str) -> SplitSource:
    return open_source("nexmark", {"events": "3000", **options}, declared, "ts", stream, Path())


def test_the_stream_name_chooses_the_table(read_all: ReadAll) -> None:
    for table in TABLES:
        source = pickle.loads(pickle.dumps(open_table(table.upper())))
        assert source.size == 3000
        assert source.rows == counts(Nexmark(3000), table)
        expected = generate(Nexmark(3000), table, 0, 3000, TABLES[table].names)
        assert read_all(source)[0].to_batches()[0] == expected
    assert open_table("anything", table="bid").rows == 2760
    assert read_all(open_table("bid"), columns=())[0]["rows"].to_pylist() == [2760]


def test_options_reach_the_generator(read_all: ReadAll) -> None:
    source = open_table("bid", seed="5", rate="7", disorder="2 seconds")
    spec = Nexmark(3000, seed=5, rate=7, disorder_us=2_000_000)
    assert read_all(source)[0].to_batches()[0] == generate(spec, "bid", 0, 3000, TABLES["bid"].names)


def test_declared_columns_are_a_choice_by_name(read_all: ReadAll) -> None:
    declared = Schema((Field("TS", TIMESTAMP), Field("Price", BIGINT)))
    source = open_table("bid", declared)
    rows, _ = read_all(source)
    assert rows.column_names == ["TS", "Price"]
    assert (
        rows["Price"].to_pylist() == generate(Nexmark(3000), "bid", 0, 3000, ["price"]).column(0).to_pylist()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "bids"}, "no table bids"),
        ({"events": "many"}, "option events is 'many'"),
        ({"events": "-1"}, "events >= 0"),
        ({"rate": "0"}, "a rate >= 1"),
        ({"disorder": "5"}, "option disorder is '5'.*write a unit"),
        ({"disorder": "soon"}, "'soon' is not a valid duration"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_table("bid", **options)


def test_missing_events_and_unknown_streams() -> None:
    with pytest.raises(SourceError, match="option events is missing"):
        open_source("nexmark", {}, None, "ts", "bid", Path())
    with pytest.raises(SourceError, match=r"no table offers .*option table 'bid'"):
        open_table("offers")


def test_declared_columns_must_be_the_tables() -> None:
    with pytest.raises(SourceError, match=r"no column prize .*did you mean price"):
        open_table("bid", Schema((Field("prize", BIGINT), Field("ts", TIMESTAMP))))
    with pytest.raises(SourceError, match="price of NEXMark's bid is BIGINT, not STRING"):
        open_table("bid", Schema((Field("price", STRING), Field("ts", TIMESTAMP))))
