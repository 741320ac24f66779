"""The SQL of the documentation with a word less, one twice, or two the wrong way round: answers or errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlglot.tokens import Token

from auctions import define
from headrace.errors import LanguageError
from headrace.language.catalog import Catalog
from headrace.language.dialect import Headrace
from headrace.language.parsing.parser import parse
from how_many import some

_ROOT = Path(__file__).parents[3]
_PAGES = (_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"^```sql[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STREAMS = """
CREATE STREAM reservation (change BIGINT, room STRING, since TIMESTAMP, until TIMESTAMP)
    FROM csv OPTIONS (path 'reservations.csv') CHANGES BY change VALID FROM since TO until;
CREATE STREAM account (id BIGINT, name STRING) FROM json OPTIONS (path 'customers.jsonl') FORMAT DEBEZIUM;
CREATE STREAM bid (ts TIMESTAMP, auction BIGINT, item STRING, bidder STRING, price BIGINT)
    FROM csv OPTIONS (path 'bids.csv') TIMESTAMP BY ts;
CREATE STREAM offer (minute BIGINT, ts BIGINT, item STRING, price BIGINT)
    FROM csv OPTIONS (path 'offers.csv') TIMESTAMP BY minute;
CREATE STREAM auction (ts TIMESTAMP, id BIGINT, initial_bid BIGINT, seller BIGINT)
    FROM csv OPTIONS (path 'auctions.csv') TIMESTAMP BY ts;
CREATE STREAM closed (ts TIMESTAMP, id BIGINT) FROM csv OPTIONS (path 'closed.csv') TIMESTAMP BY ts;
CREATE STREAM person (ts TIMESTAMP, id BIGINT) FROM csv OPTIONS (path 'people.csv') TIMESTAMP BY ts;
CREATE STREAM sold (ts TIMESTAMP, item STRING) FROM csv OPTIONS (path 'sold.csv') TIMESTAMP BY ts;
CREATE STREAM coupon (ts TIMESTAMP, shop STRING, days BIGINT)
    FROM csv OPTIONS (path 'coupons.csv') TIMESTAMP BY ts;
CREATE STREAM orders (ts BIGINT, id BIGINT, customer STRUCT<name: STRING, city: STRING>,
    items ARRAY<STRUCT<sku: STRING, n: BIGINT>>, tags MAP<STRING, STRING>)
    FROM json OPTIONS (path 'orders.json') TIMESTAMP BY ts;
CREATE STREAM carts (ts BIGINT, id BIGINT, items ARRAY<STRUCT<sku: STRING, n: BIGINT>>)
    FROM json OPTIONS (path 'carts.json') TIMESTAMP BY ts;
CREATE STREAM tick (timestamp TIMESTAMP, value BIGINT) FROM rate TIMESTAMP BY timestamp;
CREATE STREAM transfer (ts BIGINT, source STRING, target STRING, amount BIGINT)
    FROM csv OPTIONS (path 'transfers.csv') TIMESTAMP BY ts;
CREATE STREAM reading (ts TIMESTAMP, id BIGINT, celsius BIGINT, device STRING, value DOUBLE)
    FROM csv OPTIONS (path 'readings.csv') TIMESTAMP BY ts;
CREATE STREAM measured (minute BIGINT, device STRING, value DOUBLE, celsius DOUBLE)
    FROM csv OPTIONS (path 'readings.csv') TIMESTAMP BY minute;
CREATE STREAM picture (minute BIGINT, name STRING) FROM csv OPTIONS (path 'pictures.csv') TIMESTAMP BY minute;
CREATE RELATION sensor (id BIGINT, room STRING) FROM csv OPTIONS (path 'sensors.csv');
CREATE STREAM sale (ts TIMESTAMP, price DECIMAL(6, 2), shop STRING, taxed DECIMAL(8, 3))
    FROM csv OPTIONS (path 'sales.csv') TIMESTAMP BY ts;
CREATE STREAM booking AS SELECT target AS account, amount FROM transfer;
CREATE STREAM balance AS SELECT account, SUM(amount) AS balance FROM booking GROUP BY account;
CREATE STREAM current_price AS SELECT auction AS id, price, 1 AS seller FROM bid;
CREATE RELATION customer (ts TIMESTAMP, op STRING, id BIGINT, segment STRING) KEY (id)
    FROM csv OPTIONS (path 'customer_changes.csv') CHANGES BY op TIMESTAMP BY ts;
"""
CATALOG, _ = define(_STREAMS, Catalog())
QUERY = re.compile(r"SELECT|ISTREAM|CREATE QUERY|EXPLAIN|SHOW|SET", re.IGNORECASE)
STATEMENTS = sorted(
    {
        part.strip()
        for page in _PAGES
        for block in _BLOCK.findall(page.read_text())
        for part in block.split(";")
        if part.strip()
    }
)
"""The statements of the documentation, each once."""


def _mutilated(text: str) -> Iterator[str]:
    tokens: list[Token] = Headrace().tokenizer().tokenize(text)
    spans = [(token.start, token.end + 1) for token in tokens]
    for start, end in spans:
        yield text[:start] + text[end:]
        yield f"{text[:end]} {text[start:end]}{text[end:]}"
    for (start, end), (next_start, next_end) in pairwise(spans):
        first, between, second = text[start:end], text[end:next_start] or " ", text[next_start:next_end]
        yield text[:start] + second + between + first + text[next_end:]


@pytest.mark.parametrize("statement", [text for text in STATEMENTS if QUERY.match(text)])
def test_the_examples_are_understood(statement: str) -> None:
    if "prize" not in statement:
        define(statement, CATALOG)


@pytest.mark.parametrize("statement", some(STATEMENTS))
def test_a_slip_is_an_error_with_a_place_and_never_a_crash(statement: str) -> None:
    errors = [error for text in _mutilated(statement) if (error := _error_of(text)) is not None]
    assert errors
    assert [error for error in errors if error.position is None] == []
    assert [error for error in errors if error.message.endswith("unexpected here") and not error.hint] == []


def _error_of(text: str) -> LanguageError | None:
    try:
        # What describes its columns itself needs its source to be more than read.
        if re.search("nexmark|FROM rate", text):
            parse(text)
        else:
            define(text, CATALOG)
    except LanguageError as error:
        return error
    return None
