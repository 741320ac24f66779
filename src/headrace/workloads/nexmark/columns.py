"""The columns of the auction site's tables, each a function of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.workloads.nexmark.events import FIRST_ID, Nexmark, TableRows
from headrace.workloads.randomness import below, choice, draw, modulo

_AUCTIONS: Final = 3
_HOT_EVERY: Final = 100
_OPEN_AUCTIONS: Final = 100
_ACTIVE_PERSONS: Final = 1000
_CATEGORIES: Final = 5
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


Maker = Callable[[TableRows], pa.Array]


def _instants(spec: Nexmark, events: Int64Array) -> Int64Array:
    return spec.start + events * 1_000_000 // spec.rate


def _timestamps(instants: Int64Array) -> pa.Array:
    return pa.array(instants).view(TIMESTAMP)


def _ts(rows: TableRows) -> pa.Array:
    instants = _instants(rows.spec, rows.events)
    if rows.spec.disorder_us:
        instants -= modulo(draw(rows.spec.seed, "disorder", rows.events), rows.spec.disorder_us + 1)
    return _timestamps(instants)


def _expires(rows: TableRows) -> pa.Array:
    return _timestamps(_instants(rows.spec, rows.closings))


def _ids(rows: TableRows) -> pa.Array:
    return pa.array(rows.ordinals + FIRST_ID)


def _bid_auction(rows: TableRows) -> pa.Array:
    bits = rows.bits("auction")
    last = rows.blocks * _AUCTIONS + (_AUCTIONS - 1)
    recent = last - below(bits, np.minimum(last + 1, _OPEN_AUCTIONS))
    hot = last // _HOT_EVERY * _HOT_EVERY
    return pa.array(np.where(choice(bits, 2) == 1, hot, recent) + FIRST_ID)


def _person(rows: TableRows, column: str, rank: int) -> pa.Array:
    """The id of the hot person of that rank within the last hundred, or of a recent one."""
    bits = rows.bits(column)
    recent = rows.blocks - below(bits, np.minimum(rows.blocks + 1, _ACTIVE_PERSONS))
    hot = np.minimum(rows.blocks // _HOT_EVERY * _HOT_EVERY + rank, rows.blocks)
    return pa.array(np.where(choice(bits, 4) > 0, hot, recent) + FIRST_ID)


def _price(rows: TableRows, column: str) -> Int64Array:
    """Cents from 1 to 2**20 - 1: a random power of two, then uniform up to the next one."""
    bits = rows.bits(column)
    octave = np.int64(1) << choice(bits, _PRICE_OCTAVES)
    return octave + below(bits, octave)


def _reserve(rows: TableRows) -> pa.Array:
    return pa.array(_price(rows, "initial_bid") + _price(rows, "reserve"))


def _category(rows: TableRows) -> pa.Array:
    return pa.array(10 + below(rows.bits("category"), _CATEGORIES))


def _words(rows: TableRows, column: str, words: tuple[str, ...]) -> pa.Array:
    return _listed(words).take(pa.array(below(rows.bits(column), len(words))))


@cache
def _listed(words: tuple[str, ...]) -> pa.Array:
    """The words as a column; made when it is needed, since the first Arrow list loads a lot of libraries."""
    return pa.array(words)


def _channels(rows: TableRows) -> Int64Array:
    """The places of the bids' channels in the list."""
    bits = rows.bits("channel")
    hot = choice(bits, 2) == 1
    return np.where(hot, below(bits, len(_HOT_CHANNELS)), below(bits, len(_CHANNELS)))


def _channel(rows: TableRows) -> pa.Array:
    return _listed(_CHANNELS).take(pa.array(_channels(rows)))


def _url(rows: TableRows) -> pa.Array:
    """Three folders and, for nine of ten bids through a channel that is not hot, the channel's number."""
    folders = (_letters(rows, f"folder {place}", 5, 5) for place in range(3))
    page = _join("/", "https://www.nexmark.com", *folders, "item.htm?query=1")
    channels = _channels(rows)
    numbers = below(draw(0, "channel", np.arange(len(_CHANNELS))), 2**31 - 1)
    suffix = _join("", "&channel_id=", pa.array(numbers[channels]).cast(STRING))
    named = (channels >= len(_HOT_CHANNELS)) & (below(rows.bits("named"), 10) > 0)
    return _join("", page, pc.if_else(pa.array(named), suffix, ""))


def _extra(least: int, most: int) -> Maker:
    return lambda rows: _letters(rows, "extra", least, most)


def _letters(rows: TableRows, column: str, least: int, most: int) -> pa.Array:
    """Texts of small letters, at least and at most so long; each letter costs a byte of randomness."""
    words = -(-most // 8)
    places = (rows.events[:, None] * words + np.arange(words)).ravel()
    letters = draw(rows.spec.seed, f"{rows.table}.{column}", places).view(np.uint8)
    letters = (letters.astype(np.uint16) * 26 >> 8).astype(np.uint8) + np.uint8(ord("a"))
    lengths = least + below(rows.bits(f"{column} length"), most - least + 1)
    kept = letters.reshape(-1, words * 8)[np.arange(words * 8) < lengths[:, None]]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    texts = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(kept))
    return texts.cast(STRING)


def _item(rows: TableRows) -> pa.Array:
    return _join(" ", _words(rows, "quality", _QUALITIES), _words(rows, "thing", _THINGS))


def _description(rows: TableRows) -> pa.Array:
    number = pa.array(below(rows.bits("description"), 10_000)).cast(STRING)
    return _join(" ", _item(rows), "from", _words(rows, "city", _CITIES), "lot", number)


def _name(rows: TableRows) -> pa.Array:
    return _join(" ", _words(rows, "first name", _FIRST_NAMES), _words(rows, "last name", _LAST_NAMES))


def _email(rows: TableRows) -> pa.Array:
    user = pc.replace_substring(pc.utf8_lower(_name(rows)), " ", ".")
    return _join("", user, ".", _ids(rows).cast(STRING), "@example.com")


def _join(separator: str, *parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


COLUMNS: Final[Mapping[str, Mapping[str, tuple[pa.DataType, Maker]]]] = {
    "person": {
        "id": (BIGINT, _ids),
        "name": (STRING, _name),
        "email": (STRING, _email),
        "city": (STRING, lambda rows: _words(rows, "city", _CITIES)),
        "state": (STRING, lambda rows: _words(rows, "state", _STATES)),
        "extra": (STRING, _extra(80, 120)),
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
        "extra": (STRING, _extra(320, 480)),
        "ts": (TIMESTAMP, _ts),
    },
    "bid": {
        "auction": (BIGINT, _bid_auction),
        "bidder": (BIGINT, lambda rows: _person(rows, "bidder", 1)),
        "price": (BIGINT, lambda rows: pa.array(_price(rows, "price"))),
        "channel": (STRING, _channel),
        "url": (STRING, _url),
        "extra": (STRING, _extra(48, 72)),
        "ts": (TIMESTAMP, _ts),
    },
    "closed": {"id": (BIGINT, _ids), "ts": (TIMESTAMP, _expires)},
}

TABLES: Final[Mapping[str, Schema]] = {
    table: Schema(tuple(Field(name, dtype) for name, (dtype, _) in columns.items()))
    for table, columns in COLUMNS.items()
}
"""The columns of each table; every one is timed by `ts`."""
