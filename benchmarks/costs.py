"""What EXPLAIN COST expects of queries, beside what they keep and yield over other data.

    python benchmarks/costs.py

Streams are NEXMark's, of one seed where EXPLAIN COST looks at them and of another where queries run, in this
process. Rates are those of the second half of a run, and kept rows those of its end, before its last epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from headrace import Database, connect
from headrace.language.parsing.parser import parse
from headrace.language.references import streams_named
from headrace.language.statements import Select
from headrace.runtime.driver.status import OperatorStatus
from headrace.time import MICROSECONDS
from headrace.workloads.nexmark.queries import nexmark_queries
from results import Section
from spellings import SPELLED

EVENTS: Final = 1_000_000
RATE: Final = 10_000
EPOCHS: Final = 20
_STREAMS: Final = ("bid", "auction", "person", "closed")
_SMALL: Final = 100
"""A query that keeps fewer rows is not compared."""
_EXPECTED: Final = re.compile(
    r"^ +(?P<rate>[\d.,e+-]+) rows/s(, each for [^;]*)?(; keeps (?P<kept>[\d,]+) rows?)?$"
)


@dataclass(frozen=True)
class Compared:
    """What was expected and what came, of one query.

    Attributes:
        name: the query.
        kept: rows of state, expected and found.
        rate: elements of its result per second of application time, expected and found.
    """

    name: str
    kept: tuple[float, float]
    rate: tuple[float, float]


def section() -> Section:
    """All figures."""
    found = [compare(name, text) for name, text in queries().items()]
    rows = [(part.name, *_cells(part.kept), *_cells(part.rate)) for part in found]
    large = [part.kept for part in found if part.kept[1] >= _SMALL]
    near = sum(0.5 <= expected / measured <= 2 for expected, measured in large)
    text = (
        f"Of {len(large)} queries that keep {_SMALL} rows or more, {near} keep between half and twice as "
        "many as expected. Rates are per second of application time; results include corrections."
    )
    heads = ("query", "expected to keep", "kept", "ratio", "expected results/s", "results/s", "ratio")
    return Section("What EXPLAIN COST expects", heads, tuple(rows), text)


def queries() -> Mapping[str, str]:
    """Those of NEXMark, and those of the bench that are one query over its streams."""
    wanted = {query.name: query.text for query in nexmark_queries() if _reads(query.text) <= set(_STREAMS)}
    wanted |= {
        f"bench: {name}": texts[0]
        for name, texts in SPELLED.items()
        if len(texts) == 1 and "FROM few" not in texts[0]
    }
    return wanted


def _reads(text: str) -> frozenset[str]:
    """The streams that the query of a text reads, or names otherwise, in lower case."""
    asked = [statement for statement in parse(text) if isinstance(statement, Select)]
    return frozenset().union(*(streams_named(select.query) for select in asked))


def compare(name: str, text: str) -> Compared:
    """What is expected of a query, and what comes."""
    *before, query = [part for part in re.sub(r"--.*", "", text).split(";") if part.strip()]
    with _database(1) as db:
        for statement in before:
            db.execute(statement)
        explained = str(db.execute(f"EXPLAIN COST {query}")[0]).splitlines()
    expected = [match for line in explained if (match := _EXPECTED.match(line))]
    *_, last = expected
    kept = sum(_number(match["kept"] or "0") for match in expected)
    # Persons and auctions are 2 and 6 percent of the events.
    with _database(7, EVENTS if re.search(r"\bbid\b", query) else EVENTS // 50) as db:
        for statement in before:
            db.execute(statement)
        asked = db.query(query)
        seen: list[Sequence[OperatorStatus]] = []
        db.run(lambda _: seen.append(db.status.operators))
        node = db.status.query(asked.name).chain[0].node
    half = seen[len(seen) // 2 : -1]
    came = half[-1][node].rows_out - half[0][node].rows_out
    span = (_newest(half[-1]) - _newest(half[0])) / MICROSECONDS["SECOND"]
    held = median(sum(part.state_rows for part in operators) for operators in half[-3:])
    return Compared(name, (kept, held), (_number(last["rate"]), came / span))


def _database(seed: int, rows: int = EVENTS) -> Database:
    db = connect(runner="inline", epoch_rows=rows // EPOCHS, keep_results=False)
    for name in _STREAMS:
        options = f"events={EVENTS}, rate={RATE}, seed={seed}"
        db.execute(f"CREATE STREAM {name} FROM nexmark OPTIONS ({options}) TIMESTAMP BY ts")
    return db


def _newest(operators: Sequence[OperatorStatus]) -> int:
    """The newest instant that was read."""
    return max(part.last or 0 for part in operators if not part.inputs)


def _cells(pair: tuple[float, float]) -> Iterator[str]:
    expected, measured = pair
    yield f"{expected:,.0f}"
    yield f"{measured:,.0f}"
    yield f"{expected / measured:.2f}" if expected and measured else ""


def _number(text: str) -> float:
    return float(text.replace(",", ""))


if __name__ == "__main__":
    print(section())
