"""What EXPLAIN COST expects of queries, beside what they keep, yield and take over other data.

    python benchmarks/costs.py             # prints the table
    python benchmarks/costs.py --write     # also writes it to benchmarks/RESULTS.md
    python benchmarks/costs.py --fit       # instead fits the constants of seconds anew, for the package

Streams are NEXMark's in Parquet files, of one seed where EXPLAIN COST looks at them, and the constants of
seconds are fitted, and of another where queries run, in this process. Rates are those of the second half of
a run, kept rows those of its end before its last epoch, and seconds those of processor time of all of it,
after another run.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from fit import FITTED, Ran, database, fit, ran, statements
from headrace.language.parsing.parser import parse
from headrace.language.references import streams_named
from headrace.language.statements.statements import CreateStreamAs, Select
from headrace.optimizer.cost import machine
from headrace.time import MICROSECONDS
from headrace.workloads.nexmark.queries import nexmark_queries
from nexmark import write_events
from results import RESULTS, Section, write_part
from spellings import SPELLED

TITLE: Final = "What EXPLAIN COST expects"
EVENTS: Final = 1_000_000
FITTED_EVENTS: Final = 300_000
FEW_EVENTS: Final = 20_000
EPOCH_ROWS: Final = 50_000
FEW_ROWS: Final = 4_000
"""Those of an epoch where no bids are read: of 50 events 46 are bids."""
_SMALL: Final = 100
"""A query that keeps fewer rows is not compared."""
_EXPECTED: Final = re.compile(
    r"^ +(?P<rate>[\d.,e+-]+) rows/s(, each for [^;]*)?(; keeps (?P<kept>[\d,]+) rows?)?; takes .* s$"
)
_TAKES: Final = re.compile(r"^takes about (?P<seconds>[\d.,e+-]+) s ", re.MULTILINE)


@dataclass(frozen=True)
class Folders:
    """Where NEXMark's events are.

    Attributes:
        looked_at: those that EXPLAIN COST looks at.
        run: those that queries run over.
        fitted: those that constants are fitted to.
        few: those that warm up.
    """

    looked_at: Path
    run: Path
    fitted: Path
    few: Path

    @classmethod
    def below(cls, folder: Path) -> Folders:
        """Write all events below a folder."""
        found = cls(*(folder / name for name in ("looked_at", "run", "fitted", "few")))
        write_events(found.looked_at, EVENTS)
        write_events(found.run, EVENTS, seed=7)
        write_events(found.fitted, FITTED_EVENTS)
        write_events(found.few, FEW_EVENTS)
        return found


@dataclass(frozen=True)
class Compared:
    """What was expected and what came, of one query.

    Attributes:
        name: the query.
        kept: rows of state, expected and found.
        rate: elements of its result per second of application time, expected and found.
        seconds: of processor time for a million rows that it reads, expected and found.
    """

    name: str
    kept: tuple[float, float]
    rate: tuple[float, float]
    seconds: tuple[float, float]


def section(folders: Folders) -> Section:
    """All figures."""
    found = [compare(name, text, folders) for name, text in queries().items()]
    rows = [
        (part.name, *_cells(part.kept, 0), *_cells(part.rate, 0), *_cells(part.seconds, 2)) for part in found
    ]
    large = [part.kept for part in found if part.kept[1] >= _SMALL]
    kept, taken = _near(large), _near([part.seconds for part in found])
    text = (
        f"Of {len(large)} queries that keep {_SMALL} rows or more, {kept} keep between half and twice as "
        f"many as expected. Of all {len(found)}, {taken} take between half and twice the expected time. "
        "Seconds are of processor time for a million rows that are read: what reading, operators, exchanges "
        "and state take. Rates are per second of application time; results include corrections."
    )
    names = ("kept rows", "results/s", "seconds")
    heads = ("query", *(head for name in names for head in (f"expected {name}", name, "ratio")))
    return Section("By query", heads, tuple(rows), text)


def _near(pairs: list[tuple[float, float]]) -> int:
    return sum(0.5 <= expected / measured <= 2 for expected, measured in pairs)


def queries() -> Mapping[str, str]:
    """Those of NEXMark but the one that the clock times, and those of the bench that are one query."""
    wanted = {query.name: query.text for query in nexmark_queries() if "arriving" not in _reads(query.text)}
    wanted |= {
        f"bench: {name}": texts[0]
        for name, texts in SPELLED.items()
        if len(texts) == 1 and "FROM few" not in texts[0]
    }
    return wanted


def _reads(text: str) -> frozenset[str]:
    """The streams that the queries of a text read, or name otherwise, in lower case."""
    asked = [statement for statement in parse(text) if isinstance(statement, Select | CreateStreamAs)]
    return frozenset().union(*(streams_named(select.query) for select in asked))


def compare(name: str, text: str, folders: Folders) -> Compared:
    """What is expected of a query, and what comes."""
    *before, query = statements(text)
    epoch_rows = EPOCH_ROWS if "bid" in _reads(text) else FEW_ROWS
    with database(folders.looked_at, epoch_rows) as db:
        for statement in before:
            db.execute(statement)
        explained = str(db.execute(f"EXPLAIN COST {query}")[0])
    expected = [match for line in explained.splitlines() if (match := _EXPECTED.match(line))]
    takes = _TAKES.search(explained)
    assert takes is not None
    ran(name, text, folders.few, epoch_rows)
    found = ran(name, text, folders.run, epoch_rows)
    kept = sum(_number(match["kept"] or "0") for match in expected)
    half = found.operators[len(found.operators) // 2 : -1]
    return Compared(
        name,
        (kept, median(sum(part.state_rows for part in operators) for operators in half[-3:])),
        (_number(expected[-1]["rate"]), _rate(found)),
        (_number(takes["seconds"]), sum(found.seconds) / found.rows * 1e6),
    )


def _rate(found: Ran) -> float:
    """Elements of the result per second of application time."""
    half = found.operators[len(found.operators) // 2 : -1]
    came = half[-1][found.result].rows_out - half[0][found.result].rows_out
    newest = [max(part.last or 0 for part in operators if not part.inputs) for operators in half]
    return came / (newest[-1] - newest[0]) * MICROSECONDS["SECOND"]


def _cells(pair: tuple[float, float], digits: int) -> Iterator[str]:
    expected, measured = pair
    yield f"{expected:,.{digits}f}"
    yield f"{measured:,.{digits}f}"
    yield f"{expected / measured:.2f}" if expected and measured else ""


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def main() -> None:
    """Print the table, or fit the constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the constants and put them into the package")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folders = Folders.below(Path(name))
        if options.fit:
            found = fit({**queries(), **FITTED}, folders.fitted, folders.few)
            Path(str(machine.CONSTANTS)).write_text(found.written())
            print(f"Constants are in {machine.CONSTANTS}; without --fit they are used and compared.")
            return
        table = section(folders)
    text = f"`python benchmarks/costs.py --write`, seconds as on {machine.MACHINE.name}.\n\n{table}"
    print(text)
    if options.write:
        write_part(TITLE, text)


if __name__ == "__main__":
    main()
