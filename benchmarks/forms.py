"""Queries over hostile forms of the bids: few and a million keys, one hot key, long texts, NULLs, bursts.

    python benchmarks/forms.py --rows 1000000 --runs 3 --only distinct

Runs are in this process, the forms of a query in turn. Prints for each query its forms from the fastest to
the slowest: medians of rows per second, and what part of the fastest form's that is; and of the processor's
seconds per million rows, and how many times those of the form that takes least.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import headrace as hr
from bids import DISORDER_SECONDS, FORMS, auctions_of, write_form
from headrace.runtime.tasks.heap import keep_freed_memory
from processes import Watch
from results import RESULTS, Section, machine, write_part
from spellings import SPELLED

TITLE: Final = "Hostile forms of the bids"

QUERIES: Final[Mapping[str, str]] = {
    "all columns": SPELLED["q0"][0],
    "filter": SPELLED["project"][0],
    "over": SPELLED["over"][0],
    "sliding": SPELLED["sliding"][0],
    "tumbling": SPELLED["tumbling"][0],
    # Six windows a bid, not sixty: with a key for each bid its answer takes an epoch's memory many times.
    "hop": SPELLED["hop"][0].replace("INTERVAL '1' SECOND,", "INTERVAL '10' SECONDS,"),
    "distinct": SPELLED["distinct"][0],
    "distinct of each": "SELECT auction, COUNT(DISTINCT bidder) AS bidders "
    "FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY auction",
    "join": "SELECT auction, price, seller "
    "FROM bid [NOW], auction WINDOW(RANGE 10 SECONDS) a WHERE auction = a.id",
    "top": "SELECT auction, price FROM bid [RANGE 60 SECONDS] ORDER BY price DESC LIMIT 10",
}
"""The queries, by name; most are those of `spellings.py`."""

REASONS: Final = """\
Where a form is below a third of the best one, this is why:

- **20 columns, long texts**: bytes. All columns of 20 are four times the values, with texts among them;
  two texts of 200 characters are ten times the bytes of a row. Reading them from Parquet is most of what
  a filter does, and hashing, comparing and copying them most of the rest.
- **a million keys, unique keys**: nearly a group for each row. Other forms have a hundred to some
  thousand groups at a time, which stay in the processor's caches, and are added up before they are sent;
  here each row looks for its group in main memory, and is a row of state and of the answer. Tumbling
  windows then say a row per bid in place of one per thousand, and HOP six, one for each of its windows.
  HOP over a hundred keys has the shortest answer of all, to which the other forms are compared.
- **DECIMALs**: 16 bytes in place of 8, which Parquet keeps as bytes in the other order."""
"""Reasons for what is slow, each seen in a profile."""


@dataclass(frozen=True)
class Taken:
    """Figures of a query over one form.

    Attributes:
        form: its name.
        rate: rows per second, in the median of the runs.
        processor: seconds of processor time per million rows, likewise.
    """

    form: str
    rate: float
    processor: float


def run(text: str, bids: Path, form: str, threads: int | None) -> tuple[float, float]:
    """The seconds of a run, and those of the processor."""
    disorder = f" DISORDER {DISORDER_SECONDS} SECONDS" if form == "out of order" else ""
    with hr.connect(runner="inline", threads=threads, keep_results=False) as db:
        for name, path, late in (("bid", bids, disorder), ("auction", auctions_of(bids), "")):
            db.execute(f"CREATE STREAM {name} FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ts{late}")
        db.query(text)
        begun, worked = time.perf_counter(), time.process_time()
        summary = db.run()
        taken = time.perf_counter() - begun, time.process_time() - worked
        if summary.failed or summary.dead_letters:
            raise RuntimeError(f"{form}: {text}: {summary}")
        return taken


def measure(
    text: str, folders: Mapping[str, Path], rows: int, runs: int, threads: int | None
) -> tuple[Taken, ...]:
    """The figures of a query over each form, the fastest first; the first run of each is not counted."""
    turns = [
        {form: run(text, bids, form, threads) for form, bids in folders.items()} for _ in range(runs + 1)
    ][1:]
    taken = (
        Taken(
            form,
            rows / median(turn[form][0] for turn in turns),
            median(turn[form][1] for turn in turns) / rows * 1e6,
        )
        for form in folders
    )
    return tuple(sorted(taken, key=lambda one: -one.rate))


def measure_all(
    names: Iterable[str], forms: Iterable[str], rows: int, runs: int, threads: int | None
) -> Iterator[tuple[str, tuple[Taken, ...]]]:
    """The figures of each query over each form; forms are written to a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {form: write_form(Path(folder) / form, form, rows) for form in forms}
        for name in names:
            yield name, measure(QUERIES[name], paths, rows, runs, threads)


def lines(taken: Sequence[Taken]) -> Iterator[str]:
    """The figures of a query, a line for each form."""
    fastest, least = max(one.rate for one in taken), min(one.processor for one in taken)
    for one in taken:
        yield (
            f"  {one.form:16} {one.rate / 1e6:7.3f} M/s ({one.rate / fastest:4.2f})"
            f"  cpu {one.processor:6.3f} s/M ({one.processor / least:4.1f} times)"
        )


def section(title: str, found: Mapping[str, Sequence[Taken]], figure: Callable[[Taken], str]) -> Section:
    """A figure of each query, in columns, over each form."""
    cells = {name: {one.form: figure(one) for one in taken} for name, taken in found.items()}
    forms = dict.fromkeys(form for name in cells for form in FORMS if form in cells[name])
    rows = tuple((form, *(cells[name][form] for name in found)) for form in forms)
    return Section(title, ("form", *found), rows)


def main() -> None:
    """Measure the queries one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--threads", type=int, help="how many work at once; all cores if not given")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    keep_freed_memory()
    how = (options.rows, options.runs, options.threads)
    found = {}
    with Watch() as watch:
        for name, taken in measure_all(options.only, options.forms, *how):
            found[name] = taken
            print(name, *lines(taken), sep="\n", flush=True)
    if options.write:
        parts = (
            section("Millions of bids a second", found, lambda one: f"{one.rate / 1e6:.2f}"),
            section("Seconds of processor time per million", found, lambda one: f"{one.processor:.2f}"),
        )
        head = (
            f"`python {' '.join(sys.argv)}`, {machine()}, in one process. Other processes used "
            f"{watch.used.foreign:.0%} of the machine in the meantime.\n\n{REASONS}"
        )
        write_part(TITLE, "\n\n".join((head, *map(str, parts))))


if __name__ == "__main__":
    main()
