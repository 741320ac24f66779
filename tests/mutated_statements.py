"""Statements of the documentation and of tests with pieces that were changed, and a database to try them on.

A statement is cut into words, numbers, strings and signs. Some of them are taken out, doubled, swapped,
replaced by others or by values at the edge of what there is, wrapped in calls, or given more or fewer
arguments.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

import headrace as hr
from headrace.errors import HeadraceError, LanguageError, PlanError

_ROOT: Final = Path(__file__).parents[1]
_PAGES: Final = (_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md")))
_BLOCK: Final = re.compile(r"^```sql[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PIECE: Final = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\d+(?:\.\d+)?|\w+|\s+|::|<>|<=|>=|\|\||[^\w\s]")

STREAMS: Final = """
CREATE STREAM bid (ts TIMESTAMP, auction BIGINT, item STRING, bidder STRING, price BIGINT)
    FROM push TIMESTAMP BY ts;
CREATE STREAM offer (minute BIGINT, ts BIGINT, item STRING, price BIGINT)
    FROM push TIMESTAMP BY minute DISORDER 5;
CREATE STREAM orders (ts BIGINT, id BIGINT, customer STRUCT<name: STRING, city: STRING>,
    items ARRAY<STRUCT<sku: STRING, n: BIGINT>>, tags MAP<STRING, STRING>)
    FROM push TIMESTAMP BY ts RETAIN ALL;
CREATE STREAM reading (ts TIMESTAMP, id BIGINT, celsius DOUBLE) FROM push TIMESTAMP BY ts STRICT;
CREATE STREAM sale (ts TIMESTAMP, price DECIMAL(6, 2), shop STRING, taxed DECIMAL(8, 3))
    FROM push TIMESTAMP BY ts;
CREATE STREAM reservation (change BIGINT, room STRING, since TIMESTAMP, until TIMESTAMP)
    FROM push CHANGES BY change VALID FROM since TO until;
CREATE STREAM tick (id BIGINT, kind STRING, price DECIMAL(10, 2), at BIGINT)
    FROM push TIMESTAMP BY at DISORDER 3;
CREATE RELATION customer (ts TIMESTAMP, op STRING, id BIGINT, segment STRING) KEY (id)
    FROM push CHANGES BY op TIMESTAMP BY ts;
CREATE STREAM dear AS SELECT ts, item, price FROM bid WHERE price > 100;
CREATE QUERY q AS SELECT kind, COUNT(*) AS n FROM tick [RANGE 10] GROUP BY kind;
"""
"""What statements may read; besides, the bounded `g` and the table `rel`."""

_MORE: Final = Path(__file__).with_suffix(".txt").read_text().splitlines()

_EDGES: Final = (
    "NULL", "0", "-1", "1", "2", "''", "' '", "'a'", "TRUE", "1.5",
    "0.000000000000000000000000000000000000001", "2147483648", "4294967296", "4611686018427387904",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999", "1e308", "1e400",
    "1e-400", "'9999-99-99'", "'0000-00-00T00:00:00Z'", "'\\u0000'", "'%'", "'('", "'é'", "X'00'",
    "CURRENT_DATE", "DATE '2024-02-30'", "INTERVAL '5' SECOND", "INTERVAL '1' MONTH",
    "CAST(NULL AS BIGINT)", "*", "1L", "?", ":x", "ARRAY()", "ARRAY(1, NULL)", "ARRAY(NULL)",
    "MAP('a', 1)", "STRUCT(1 AS a)", "(SELECT 1)", "(VALUES (1))",
)  # fmt: skip
_TYPES: Final = (
    "BIGINT", "INT", "TINYINT", "STRING", "BOOLEAN", "DOUBLE", "FLOAT", "DATE", "TIMESTAMP", "BINARY",
    "VOID", "DECIMAL", "DECIMAL(38, 38)", "DECIMAL(76, 10)", "DECIMAL(77, 0)", "DECIMAL(0, 0)",
    "DECIMAL(5, 9)", "VARCHAR(0)", "ARRAY<BIGINT>", "ARRAY<ARRAY<STRING>>", "MAP<STRING, BIGINT>",
    "STRUCT<a: BIGINT>", "INTERVAL DAY",
)  # fmt: skip
_NAMES: Final = (
    "g", "rel", "bid", "tick", "q", "dear", "customer", "k", "v", "s", "ts", "id", "kind", "price",
    "at", "nosuch", "items", "tags", "customer", "window_start", "VALID_FROM", "_partition",
    "DISTINCT", "ALL", "NOT", "OVER",
)  # fmt: skip
_CALLS: Final = (
    "ABS({})", "CAST({} AS BIGINT)", "TRY_CAST({} AS DATE)", "ARRAY({})", "MAP({}, NULL)",
    "STRUCT({} AS a)", "-{}", "NOT {}", "({})", "(SELECT {})", "{} IS NULL", "COALESCE({}, NULL)",
    "SUM({})", "COUNT(DISTINCT {})", "MAX({})", "CASE WHEN {} THEN {} END", "{} || {}", "{} + {}",
    "{}[0]", "{}.a", "LAG({}) OVER (ORDER BY {})", "UNNEST({})", "ROUND({}, {})", "SPLIT({}, {})",
    "GREATEST({})", "SEQUENCE({}, {})", "{} IN ({}, NULL)", "DATE_TRUNC({}, {})",
)  # fmt: skip
_DEEP: Final = (40, 400, 3_000)


def seeds() -> list[str]:
    """Right statements: those of the documentation, and some of each kind."""
    blocks = (block for page in _PAGES for block in _BLOCK.findall(page.read_text()))
    written = {part.strip() for block in blocks for part in block.split(";") if part.strip()}
    rows = (_ROOT / "docs" / "functions.md").read_text()
    calls = set(re.findall(r"`([A-Z_0-9]+\([^`]*\))`", rows))
    return [
        *map(_over_pushed_rows, sorted(written)),
        *_MORE,
        *(f"SELECT {one} AS c FROM g" for one in sorted(calls)),
    ]


def _over_pushed_rows(text: str) -> str:
    """A statement that creates a stream over files, under another name and over rows that are pushed."""
    pushed = re.sub(r"FROM (csv|json|rate|nexmark)( OPTIONS \([^)]*\))?", "FROM push", text)
    return re.sub(r"^CREATE (STREAM|RELATION) (\w+)", r"CREATE \1 new_\2", pushed)


def mutated(random: Random, texts: Sequence[str]) -> str:
    """One of some statements with one to four changes."""
    pieces = _PIECE.findall(random.choice(texts))
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3))):
        pieces = [piece for piece in pieces if piece] or ["SELECT"]
        _mutate(random, pieces, texts)
    return random.choice(_AROUND).format("".join(pieces)) if random.random() < 0.2 else "".join(pieces)


_AROUND: Final = (
    *(
        "EXPLAIN {}",
        "EXPLAIN PHYSICAL {}",
        "EXPLAIN COST {}",
        "EXPLAIN COST CREATE QUERY q AS {}",
        "CREATE QUERY y AS {}",
        "CREATE STREAM y AS {}",
        "{};;",
    ),
    *(
        "EXPLAIN REPLACE q AS {}",
        "CREATE OR REPLACE QUERY q AS {}",
        "ISTREAM({})",
        "SELECT * FROM ({})",
        "({})",
    ),
)


def _mutate(random: Random, pieces: list[str], texts: Sequence[str]) -> None:
    place = random.choice([at for at, piece in enumerate(pieces) if not piece.isspace()] or [0])
    piece = pieces[place]
    match random.randrange(12):
        case 0:
            del pieces[place]
        case 1:
            pieces.insert(place, f"{piece} ")
        case 2:
            other = random.randrange(len(pieces))
            pieces[place], pieces[other] = pieces[other], piece
        case 3 | 4 | 5:
            pieces[place] = _other(random, piece)
        case 6 | 7:
            pieces[place] = random.choice(_CALLS).replace("{}", piece)
        case 8:
            pieces[place] = f"{piece}, {random.choice((*_EDGES, *_NAMES))}"
        case 9:
            begin = next((at for at in range(place, len(pieces)) if pieces[at] in "(,"), place)
            end = next((at for at in range(begin + 1, len(pieces)) if pieces[at] in ",)"), begin)
            del pieces[begin + (pieces[begin] == "(") : end]
        case 10:
            scion = _PIECE.findall(random.choice(texts))
            start = random.randrange(len(scion))
            pieces[place:place] = [" ", *scion[start : start + random.randint(1, 15)], " "]
        case _ if random.random() < 0.1:
            deep = random.choice(_DEEP)
            before, after = random.choice(
                (("(", ")"), ("ABS(", ")"), ("NOT ", ""), ("- ", ""), ("ARRAY(", ")"))
            )
            pieces[place] = before * deep + piece + after * deep
        case _:
            pieces[place] = random.choice((*_EDGES, *_TYPES, *_NAMES))


def _other(random: Random, piece: str) -> str:
    """What may stand for a piece: a type for a type, a name for a name, a value for a value."""
    if piece.upper() in _TYPES:
        return random.choice(_TYPES)
    return random.choice(_NAMES if piece[0].isalpha() and random.random() < 0.7 else _EDGES)


def database() -> hr.Database:
    """One in which statements may be made, and in which nothing runs."""
    db = hr.connect(runner="inline")
    rows: dict[str, list[Any]] = {
        "ts": [1, 2, 4],
        "k": [1, 2, 1],
        "v": [5, None, 7],
        "s": ["a", "b", None],
        "x": [0.5, 1.5, None],
        "y": [1, 2, 3],
    }
    db.stream("g", pa.table(rows), timestamp="ts")
    db.relation("rel", pa.table({"k": [1, 2], "v": [3, 4], "name": ["x", "y"]}))
    db.execute(STREAMS)
    return db


class Trier:
    """Tries statements on a database, of which another one takes the place when it has changed."""

    def __init__(self) -> None:
        self._db = database()

    def fault(self, text: str) -> str | None:
        """What is wrong with how a statement is refused; None where it is taken, or refused well."""
        try:
            self._db.execute(text)
        except (LanguageError, PlanError) as error:
            return None if error.message and error.position is not None else f"no message or place: {error!r}"
        except HeadraceError as error:
            return None if error.message else "an error without a message"
        except Exception as error:
            self.close()
            self._db = database()
            return f"{error!r} at {_place_of(error)}"
        if not text.lstrip().upper().startswith("EXPLAIN"):
            self.close()
            self._db = database()
        return None

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{frame.filename}:{frame.lineno}" for frame in frames if "/headrace/" in frame.filename]
    return ours[-1] if ours else "?"
