"""The laws of the NEXMark generator; expected values come from the published proportions, not from a run."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import Int64Array, integers
from headrace.errors import UserError
from headrace.workloads.nexmark import FIRST_ID, MAX_LIFE, MIN_LIFE, TABLES, Nexmark, counts, generate
from how_many import examples

EVENTS = 200_000
SPEC = Nexmark(EVENTS, seed=7)


def whole(spec: Nexmark, table: str) -> pa.Table:
    return pa.table(generate(spec, table, 0, spec.events, TABLES[table].names))


@pytest.fixture(scope="module")
def bids() -> pa.Table:
    return whole(SPEC, "bid")


@pytest.fixture(scope="module")
def auctions() -> pa.Table:
    return whole(SPEC, "auction")


def array(table: pa.Table, column: str) -> Int64Array:
    return integers(table[column].combine_chunks())


@examples(17)
@given(
    events=st.integers(0, 5_000),
    cuts=st.lists(st.integers(0, 5_000), max_size=5),
    table=st.sampled_from(sorted(TABLES)),
)
def test_slices_concatenate_to_the_whole(events: int, cuts: list[int], table: str) -> None:
    spec = Nexmark(events, disorder_us=1_000)
    places = [0, *sorted(min(cut, events) for cut in cuts), events]
    columns = TABLES[table].names
    parts = [generate(spec, table, *ends, columns) for ends in itertools.pairwise(places)]
    assert pa.Table.from_batches(parts).combine_chunks() == whole(spec, table).combine_chunks()
    assert counts(spec, table) == whole(spec, table).num_rows


@pytest.mark.parametrize("events", [0, 1, 2, 5, 49, 50, 51, 54, 2_050, MAX_LIFE, 150_003])
def test_counts_are_exact(events: int) -> None:
    spec = Nexmark(events)
    for table in TABLES:
        assert counts(spec, table) == generate(spec, table, 0, events, ("ts",)).num_rows
    assert sum(counts(spec, table) for table in ("person", "auction", "bid")) == events


def test_proportions() -> None:
    assert [counts(SPEC, table) for table in ("person", "auction", "bid")] == [4_000, 12_000, 184_000]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_column_alone_equals_its_place_in_the_whole(table: str) -> None:
    everything = generate(SPEC, table, 10_000, 20_000, TABLES[table].names)
    everything.validate(full=True)
    assert everything.schema == TABLES[table].arrow()
    for name in TABLES[table].names:
        assert generate(SPEC, table, 10_000, 20_000, (name,)).column(0) == everything.column(name)
    assert generate(SPEC, table, 10_000, 20_000, ()).num_rows == everything.num_rows


def test_the_seed_decides() -> None:
    assert whole(Nexmark(5_000, seed=1), "bid") == whole(Nexmark(5_000, seed=1), "bid")
    assert whole(Nexmark(5_000, seed=1), "bid") != whole(Nexmark(5_000, seed=2), "bid")


def test_event_time_follows_the_rate(bids: pa.Table) -> None:
    spec = Nexmark(1_000, rate=3, start=10)
    persons = array(whole(spec, "person"), "ts")
    assert persons[:3].tolist() == [10, 10 + 50_000_000 // 3, 10 + 100_000_000 // 3]
    assert (np.diff(array(bids, "ts")) > 0).all()


@pytest.mark.parametrize("disorder", [1, 1_000, 10_000_000_000])
def test_disorder_is_bounded_and_used(disorder: int) -> None:
    spec = Nexmark(20_000, disorder_us=disorder)
    for table in ("person", "auction", "bid"):
        moved, still = array(whole(spec, table), "ts"), array(whole(Nexmark(20_000), table), "ts")
        assert ((still - moved >= 0) & (still - moved <= disorder)).all()
        assert (np.maximum.accumulate(moved) - moved <= disorder).all()
        assert (still - moved).max() > 0.9 * disorder


def test_ids_count_from_1000(auctions: pa.Table) -> None:
    assert array(auctions, "id").tolist() == list(range(FIRST_ID, FIRST_ID + 12_000))


def test_bids_are_for_auctions_that_are_open(bids: pa.Table, auctions: pa.Table) -> None:
    auction = array(bids, "auction") - FIRST_ID
    opened, expires = array(auctions, "ts")[auction], array(auctions, "expires")[auction]
    placed = array(bids, "ts")
    assert (opened < placed).all()
    assert (placed - opened).max() <= 1_750 * 100
    assert (placed < expires).all()


def test_half_of_the_bids_go_to_the_hot_auction(bids: pa.Table) -> None:
    auction = array(bids, "auction") - FIRST_ID
    last = np.arange(len(auction)) // 46 * 3 + 2
    hot = auction == last // 100 * 100
    assert 0.5 < hot.mean() < 0.52
    cold = (last - auction)[~hot]
    assert cold.min() == 0
    assert cold.max() == 99


def test_three_quarters_of_sellers_and_bidders_are_hot(bids: pa.Table, auctions: pa.Table) -> None:
    for persons, per_block, rank in ((array(auctions, "seller"), 3, 0), (array(bids, "bidder"), 46, 1)):
        last = np.arange(len(persons)) // per_block
        person = persons - FIRST_ID
        assert (person <= last).all()
        assert (person >= np.maximum(last - 999, 0)).all()
        hot = person == np.minimum(last // 100 * 100 + rank, last)
        assert 0.74 < hot.mean() < 0.77


def test_prices_are_even_over_the_powers_of_two(bids: pa.Table) -> None:
    price = array(bids, "price")
    assert price.min() == 1
    assert price.max() < 2**20
    tally = np.bincount(np.log2(price).astype(int), minlength=20)
    assert abs(tally / len(price) - 1 / 20).max() < 0.003


def test_nine_of_ten_urls_name_a_channel_that_is_not_hot(bids: pa.Table) -> None:
    parts = pc.extract_regex(
        bids["url"],
        r"^https://www\.nexmark\.com/(?P<one>[a-z]{5})/(?P<two>[a-z]{5})/(?P<three>[a-z]{5})"
        r"/item\.htm\?query=1(?P<named>&channel_id=(?P<id>[0-9]+))?$",
    ).combine_chunks()
    assert parts.null_count == 0
    for folder in ("one", "two", "three"):
        assert pc.count_distinct(parts.field(folder)).as_py() > 0.98 * len(bids)
    hot = pc.is_in(bids["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"])).to_numpy()
    named = pc.not_equal(parts.field("id"), "").to_numpy(zero_copy_only=False)
    assert not named[hot].any()
    assert 0.89 < named[~hot].mean() < 0.91
    pairs = pa.table(
        [bids["channel"].filter(named), parts.field("id").filter(named)], names=["channel", "id"]
    )
    assert pairs.group_by(["channel", "id"]).aggregate([]).num_rows == 96


@pytest.mark.parametrize(
    ("table", "least", "most"), [("bid", 48, 72), ("auction", 320, 480), ("person", 80, 120)]
)
def test_extra_fills_rows_up(table: str, least: int, most: int) -> None:
    extra = generate(Nexmark(20_000), table, 0, 20_000, ("extra",)).column(0)
    lengths = pc.utf8_length(extra).to_numpy()
    assert (lengths.min(), lengths.max()) == (least, most)
    letters = pc.value_counts(pa.array(list("".join(extra.to_pylist()))))
    assert len(letters) == 26
    shares = letters.field("counts").to_numpy() / lengths.sum()
    assert abs(shares - 1 / 26).max() < 0.008


def test_reserve_is_above_the_initial_bid(auctions: pa.Table) -> None:
    assert (array(auctions, "reserve") > array(auctions, "initial_bid")).all()


def test_closings_are_those_that_expire_before_the_end(auctions: pa.Table) -> None:
    closed = whole(SPEC, "closed")
    end = SPEC.start + EVENTS * 100
    expected = auctions.filter(pc.less(auctions["expires"].cast(pa.int64()), end))
    expected = expected.sort_by([("expires", "ascending"), ("id", "ascending")])
    assert closed["id"].to_pylist() == expected["id"].to_pylist()
    assert closed["ts"].to_pylist() == expected["expires"].to_pylist()
    life = (array(auctions, "expires") - array(auctions, "ts")) // 100
    assert life.min() >= MIN_LIFE
    assert life.max() < MAX_LIFE
    octaves = np.bincount(np.log2(life / MIN_LIFE).astype(int))
    assert abs(octaves / len(life) - 1 / 5).max() < 0.02


def test_closings_arrive_with_their_event() -> None:
    closed = generate(SPEC, "closed", 50_000, 50_100, ("ts",))
    number = (closed.column("ts").cast(pa.int64()).to_numpy() - SPEC.start) // 100
    assert len(number)
    assert ((number >= 50_000) & (number < 50_100)).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"events": -1},
        {"events": 1, "rate": 0},
        {"events": 1, "disorder_us": -1},
        {"events": 2**50},
        {"events": 1, "start": -(2**62), "disorder_us": 1},
        {"events": 2**42, "rate": 1, "start": 2**60},
    ],
)
def test_impossible_numbers_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(UserError):
        Nexmark(**arguments)


def test_unknown_tables_and_columns_are_refused() -> None:
    with pytest.raises(UserError, match="no table bids"):
        generate(SPEC, "bids", 0, 1, ())
    with pytest.raises(UserError, match="no column x"):
        generate(SPEC, "bid", 0, 1, ("x",))
    with pytest.raises(UserError, match="no table bids"):
        counts(SPEC, "bids")
