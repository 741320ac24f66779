"""NEXMark: an auction site as streams of persons, auctions, bids and closings.

The schema and the proportions follow Tucker, Tufte, Papadimos and Maier, *NEXMark: A Benchmark for Queries
over Data Streams* (2002), with the hot sellers, bidders and auctions of its later descendants in Apache Beam
and Flink. Krämer's thesis measures PIPES with it (section 14.1).

Everything is a function of (seed, event number), so any slice can be generated anywhere:

- In each block of 50 events, event 0 is a person, events 1 to 3 are auctions, the other 46 are bids. Ids
  count from 1000 in order of appearance.
- Event n happens at `start + n * 1_000_000 // rate`. Events *arrive* in the order of their numbers; with a
  disorder d, the timestamp of each is moved back by a random amount in [0, d] microseconds, so a stream is
  never more than d behind its largest timestamp.
- Half of the bids go to the hot auction, the last one whose number is a multiple of 100; the others are
  spread over the 100 last auctions. Three quarters of the auctions and bids come from the hot seller and the
  hot bidder, the first and the second of the last hundred persons; the others from the 1000 last persons.
- Auction a, opened by event n, closes at event `n + life(a)`, where life is 2,000 to 64,000 events, spread
  evenly over the powers of two in between. It `expires` when that event happens. Since no bid goes to an
  auction that opened more than 1,750 events ago, none comes after the closing.
- The fourth table, `closed`, has a row for every closing whose event number is below the number of events;
  its timestamp is the auction's `expires`, without disorder, so that it is always in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array, record_batch
from headrace.errors import UserError
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.time import MAX_INSTANT, MIN_INSTANT
from headrace.workloads.randomness import BitsArray, below, choice, draw, modulo

BLOCK: Final = 50
"""Events per block: 1 person, 3 auctions, 46 bids."""

FIRST_ID: Final = 1000
"""The id of the first person and of the first auction."""

MIN_LIFE: Final = 2_000
"""The shortest life of an auction, in events."""

MAX_LIFE: Final = 64_000
"""No auction lives for so many events."""

_PLACES: Final = {"person": (0, 1), "auction": (1, 3), "bid": (4, 46)}
"""Where a table's events lie in a block: the first one and their number."""

_AUCTIONS: Final = 3
_HOT_EVERY: Final = 100
_OPEN_AUCTIONS: Final = 100
_ACTIVE_PERSONS: Final = 1000
_CATEGORIES: Final = 5
_LIFE_OCTAVES: Final = 5
_PRICE_OCTAVES: Final = 20

_HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS: Final = (*_HOT_CHANNELS, *(f"channel-{number}" for number in range(96)))
_STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES: Final = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES: Final = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES: Final = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_QUALITIES: Final = ("antique", "blue", "broken", "heavy", "modern", "rare", "signed", "small")
_THINGS: Final = ("atlas", "bicycle", "camera", "clock", "lamp", "piano", "radio", "stamp", "vase")


@dataclass(frozen=True)
class Nexmark:
    """What to generate.

    Attributes:
        events: the number of events of all tables together.
        seed: any integer, taken modulo 2**64; another seed gives other data.
        rate: events per second of event time.
        disorder_us: how far a timestamp may be moved back, in microseconds.
        start: the instant of event 0, in microseconds since 1970-01-01 UTC.

    Raises:
        UserError: a number is out of range.
    """

    events: int
    seed: int = 1
    rate: int = 10_000
    disorder_us: int = 0
    start: int = 1_704_067_200_000_000

    def __post_init__(self) -> None:
        if self.events < 0 or self.rate < 1 or self.disorder_us < 0:
            raise UserError("NEXMark needs events >= 0, a rate >= 1 and a disorder >= 0")
        last = self.start + (self.events + MAX_LIFE) * 1_000_000 // self.rate
        if self.start - self.disorder_us < MIN_INSTANT or last > MAX_INSTANT or self.events > 2**42:
            raise UserError(
                "the timestamps of the NEXMark events are out of range",
                hint="generate fewer events or use a higher rate",
            )


def counts(spec: Nexmark, table: str) -> int:
    """How many rows the table has.

    Raises:
        UserError: there is no such table.
    """
    _require_table(table)
    if table != "closed":
        return _rank(table, spec.events)
    early = max(spec.events - MAX_LIFE, 0)
    late = _arriving(spec, "auction", early, spec.events)
    return _rank("auction", early) + int(np.count_nonzero(late.closings < spec.events))


def generate(
    spec: Nexmark, table: str, first_event: int, last_event: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """The rows that arrive with the events `[first_event, last_event)`, in order of arrival.

    Args:
        spec: what to generate.
        table: person, auction, bid or closed.
        first_event, last_event: event numbers; what lies outside `[0, spec.events)` is cut off.
        columns: the wanted columns of `TABLES[table]`, in the wanted order; only these are computed.

    Raises:
        UserError: there is no such table or column.
    """
    _require_table(table)
    first, last = max(first_event, 0), min(last_event, spec.events)
    makers = [_maker(table, column) for column in columns]
    last = max(first, last)
    rows = _closed(spec, first, last) if table == "closed" else _arriving(spec, table, first, last)
    schema = Schema(tuple(Field(name, dtype) for name, (dtype, _) in zip(columns, makers, strict=True)))
    return record_batch([make(rows) for _, make in makers], schema, len(rows.ordinals))


def _require_table(table: str) -> None:
    if table not in TABLES:
        raise UserError(f"NEXMark has no table {table}", hint=f"its tables are {', '.join(TABLES)}")


def _maker(table: str, column: str) -> tuple[pa.DataType, _Maker]:
    if column not in _DEFINITIONS[table]:
        raise UserError(
            f"NEXMark's table {table} has no column {column}", hint=f"its columns are {TABLES[table]}"
        )
    return _DEFINITIONS[table][column]


def _rank(table: str, event: int) -> int:
    """How many rows of a table have an event number below `event`."""
    start, width = _PLACES[table]
    return event // BLOCK * width + min(max(event % BLOCK - start, 0), width)


@dataclass(frozen=True)
class _Slice:
    """Rows of one table.

    Attributes:
        spec: what to generate.
        table: person, auction or bid; closings are rows of the table auction.
        ordinals: int64[n], the rows' numbers in their table, from 0.
    """

    spec: Nexmark
    table: str
    ordinals: Int64Array

    @cached_property
    def blocks(self) -> Int64Array:
        """The number of each row's block, which is also that of the last person so far."""
        return self.ordinals // _PLACES[self.table][1]

    @cached_property
    def events(self) -> Int64Array:
        """The number of each row's event."""
        start, width = _PLACES[self.table]
        return self.ordinals + self.blocks * (BLOCK - width) + start

    @cached_property
    def closings(self) -> Int64Array:
        """The event at which each auction closes."""
        bits = draw(self.spec.seed, "auction.life", self.events)
        shortest = np.int64(MIN_LIFE // BLOCK) << choice(bits, _LIFE_OCTAVES)
        return self.events + BLOCK * (shortest + below(bits, shortest))

    def bits(self, column: str) -> BitsArray:
        """Random bits for a column of these rows."""
        return draw(self.spec.seed, f"{self.table}.{column}", self.events)


_Maker = Callable[[_Slice], pa.Array]


def _arriving(spec: Nexmark, table: str, first: int, last: int) -> _Slice:
    """The persons, auctions or bids of a range of events."""
    return _Slice(spec, table, np.arange(_rank(table, first), _rank(table, last)))


def _closed(spec: Nexmark, first: int, last: int) -> _Slice:
    """The auctions that close in a range of events, ordered by closing event, then id."""
    auctions = _arriving(spec, "auction", max(first - MAX_LIFE, 0), max(last - MIN_LIFE, 0))
    closings = auctions.closings
    chosen = np.flatnonzero((closings >= first) & (closings < last))
    chosen = chosen[np.argsort(closings[chosen], kind="stable")]
    return _Slice(spec, "auction", auctions.ordinals[chosen])


# --- columns ---------------------------------------------------------------------------------------------


def _instants(spec: Nexmark, events: Int64Array) -> Int64Array:
    return spec.start + events * 1_000_000 // spec.rate


def _timestamps(instants: Int64Array) -> pa.Array:
    return pa.array(instants).view(TIMESTAMP)


def _ts(rows: _Slice) -> pa.Array:
    instants = _instants(rows.spec, rows.events)
    if rows.spec.disorder_us:
        instants -= modulo(draw(rows.spec.seed, "disorder", rows.events), rows.spec.disorder_us + 1)
    return _timestamps(instants)


def _expires(rows: _Slice) -> pa.Array:
    return _timestamps(_instants(rows.spec, rows.closings))


def _ids(rows: _Slice) -> pa.Array:
    return pa.array(rows.ordinals + FIRST_ID)


def _bid_auction(rows: _Slice) -> pa.Array:
    bits = rows.bits("auction")
    last = rows.blocks * _AUCTIONS + (_AUCTIONS - 1)
    recent = last - below(bits, np.minimum(last + 1, _OPEN_AUCTIONS))
    hot = last // _HOT_EVERY * _HOT_EVERY
    return pa.array(np.where(choice(bits, 2) == 1, hot, recent) + FIRST_ID)


def _person(rows: _Slice, column: str, rank: int) -> pa.Array:
    """The id of the hot person of that rank within the last hundred, or of a recent one."""
    bits = rows.bits(column)
    recent = rows.blocks - below(bits, np.minimum(rows.blocks + 1, _ACTIVE_PERSONS))
    hot = np.minimum(rows.blocks // _HOT_EVERY * _HOT_EVERY + rank, rows.blocks)
    return pa.array(np.where(choice(bits, 4) > 0, hot, recent) + FIRST_ID)


def _price(rows: _Slice, column: str) -> Int64Array:
    """Cents from 1 to 2**20 - 1: a random power of two, then uniform up to the next one."""
    bits = rows.bits(column)
    octave = np.int64(1) << choice(bits, _PRICE_OCTAVES)
    return octave + below(bits, octave)


def _reserve(rows: _Slice) -> pa.Array:
    return pa.array(_price(rows, "initial_bid") + _price(rows, "reserve"))


def _category(rows: _Slice) -> pa.Array:
    return pa.array(10 + below(rows.bits("category"), _CATEGORIES))


def _words(rows: _Slice, column: str, words: tuple[str, ...]) -> pa.Array:
    return _listed(words).take(pa.array(below(rows.bits(column), len(words))))


@cache
def _listed(words: tuple[str, ...]) -> pa.Array:
    """The words as a column; made when it is needed, since the first Arrow list loads a lot of libraries."""
    return pa.array(words)


def _channel(rows: _Slice) -> pa.Array:
    bits = rows.bits("channel")
    hot = choice(bits, 2) == 1
    return _listed(_CHANNELS).take(
        pa.array(np.where(hot, below(bits, len(_HOT_CHANNELS)), below(bits, len(_CHANNELS))))
    )


def _item(rows: _Slice) -> pa.Array:
    return _join(" ", _words(rows, "quality", _QUALITIES), _words(rows, "thing", _THINGS))


def _description(rows: _Slice) -> pa.Array:
    number = pa.array(below(rows.bits("description"), 10_000)).cast(STRING)
    return _join(" ", _item(rows), "from", _words(rows, "city", _CITIES), "lot", number)


def _name(rows: _Slice) -> pa.Array:
    return _join(" ", _words(rows, "first name", _FIRST_NAMES), _words(rows, "last name", _LAST_NAMES))


def _email(rows: _Slice) -> pa.Array:
    user = pc.replace_substring(pc.utf8_lower(_name(rows)), " ", ".")
    return _join("", user, ".", _ids(rows).cast(STRING), "@example.com")


def _join(separator: str, *parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


_DEFINITIONS: Final[Mapping[str, Mapping[str, tuple[pa.DataType, _Maker]]]] = {
    "person": {
        "id": (BIGINT, _ids),
        "name": (STRING, _name),
        "email": (STRING, _email),
        "city": (STRING, lambda rows: _words(rows, "city", _CITIES)),
        "state": (STRING, lambda rows: _words(rows, "state", _STATES)),
        "ts": (TIMESTAMP, _ts),
    },
    "auction": {
        "id": (BIGINT, _ids),
        "item": (STRING, _item),
        "description": (STRING, _description),
        "initial_bid": (BIGINT, lambda rows: pa.array(_price(rows, "initial_bid"))),
        "reserve": (BIGINT, _reserve),
        "expires": (TIMESTAMP, _expires),
        "seller": (BIGINT, lambda rows: _person(rows, "seller", 0)),
        "category": (BIGINT, _category),
        "ts": (TIMESTAMP, _ts),
    },
    "bid": {
        "auction": (BIGINT, _bid_auction),
        "bidder": (BIGINT, lambda rows: _person(rows, "bidder", 1)),
        "price": (BIGINT, lambda rows: pa.array(_price(rows, "price"))),
        "channel": (STRING, _channel),
        "ts": (TIMESTAMP, _ts),
    },
    "closed": {"id": (BIGINT, _ids), "ts": (TIMESTAMP, _expires)},
}

TABLES: Final[Mapping[str, Schema]] = {
    table: Schema(tuple(Field(name, dtype) for name, (dtype, _) in columns.items()))
    for table, columns in _DEFINITIONS.items()
}
"""The columns of each table; every one is timed by `ts`."""
