"""Hostile forms of the bids are what their names say, and every query has an answer over each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bids import DISORDER_SECONDS, FORMS, auctions_of, write_form
from forms import QUERIES, lines, measure, run, section

ROWS = 2_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {form: write_form(tmp_path_factory.mktemp("forms") / form, form, ROWS, 3) for form in FORMS}


@pytest.fixture(scope="module")
def bids(folders: dict[str, Path]) -> dict[str, pa.Table]:
    return {form: pa.concat_tables(map(pq.read_table, sorted(folders[form].glob("*")))) for form in folders}


def test_forms_are_what_their_names_say(bids: dict[str, pa.Table]) -> None:
    assert {len(table) for table in bids.values()} == {ROWS}
    keys = {form: len(pc.unique(table["auction"])) for form, table in bids.items()}
    assert keys["few keys"] == 100
    assert keys["unique keys"] == ROWS
    assert keys["long texts"] == keys["DECIMALs"] == keys["as they are"]
    hot = bids["one hot key"]["auction"]
    assert 0.4 < pc.sum(pc.equal(hot, pc.mode(hot)[0]["mode"])).as_py() / ROWS < 0.6
    assert bids["20 columns"].num_columns == 20
    assert pc.min(pc.utf8_length(bids["long texts"]["auction"])).as_py() > 190
    assert pa.types.is_decimal(bids["DECIMALs"].schema.field("auction").type)
    for name in ("auction", "bidder", "price"):
        assert 0.05 < bids["NULLs"][name].null_count / ROWS < 0.15


def test_rows_out_of_order_come_no_later_than_the_stream_allows(bids: dict[str, pa.Table]) -> None:
    instants = np.asarray(bids["out of order"]["ts"].cast(pa.int64()))
    behind = np.maximum.accumulate(instants) - instants
    assert 0.05 < np.mean(behind > 0) < 0.15
    assert behind.max() <= DISORDER_SECONDS * 1_000_000


def test_bursts_have_the_rows_of_ten_seconds_in_ten_milliseconds(bids: dict[str, pa.Table]) -> None:
    instants = np.asarray(bids["bursts"]["ts"].cast(pa.int64()))
    assert (instants % 10_000_000).max() <= 10_000


def test_there_is_an_auction_for_every_bid(folders: dict[str, Path], bids: dict[str, pa.Table]) -> None:
    for form, path in folders.items():
        ids = pa.concat_tables(map(pq.read_table, auctions_of(path).glob("*")))["id"]
        assert pc.all(pc.is_in(bids[form]["auction"], ids)).as_py()


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_has_an_answer_over_each_form(name: str, folders: dict[str, Path]) -> None:
    for form, path in folders.items():
        run(QUERIES[name], path, form, 1)


def test_what_runs_took_is_shown_beside_the_best(folders: dict[str, Path]) -> None:
    forms = ("few keys", "NULLs")
    taken = measure(QUERIES["distinct"], {form: folders[form] for form in forms}, ROWS, runs=1, threads=2)
    assert {one.form for one in taken} == set(forms)
    first, *_ = lines(taken)
    assert "M/s (1.00)" in first
    assert section("Rates", {"distinct": taken}, lambda one: one.form).rows == tuple((f, f) for f in forms)
