"""The time until a function ends that nobody wants any more, with arguments as large as the limits allow.

    python benchmarks/cancelling.py --worst 15

Each function of the table is called with columns and constants of the types that it takes: 64 texts of a
million characters, or 200,000 short ones. A flag is raised after 50 ms; what is printed are the milliseconds
from the flag to the end, of those calls that were still at work.
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace.errors import UserError, shortened
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import FUNCTIONS, literal, resolve
from headrace.expressions.render import render
from headrace.expressions.tree import Column, Expression
from headrace.limits import CancelledWorkError, Limit, within
from headrace.schema import BIGINT, DOUBLE, STRING

_KINDS = (STRING, BIGINT, DOUBLE, pa.list_(STRING), pa.list_(BIGINT))
_WORDS = ("a", "%b%", "(a|b)+c", "$.a", "day", 1_000_000, 2)


def rows(long: bool) -> pa.RecordBatch:
    """The columns of all types: few long values, or many short ones."""
    count, length = (64, 1_000_000) if long else (200_000, 20)
    random = np.random.default_rng(3)
    letters = random.integers(97, 101, 2 * length).astype(np.uint8).tobytes().decode()
    texts = [letters[place % length : place % length + length] for place in range(count)]
    words = [text[:200].split("b") for text in texts[: min(count, 2_000)]] * (count // min(count, 2_000))
    numbers = random.integers(-5, 1_000_000, count)
    columns = [texts, numbers, numbers / 7, words, [[1, 2, 3]] * count]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _KINDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{place}" for place in range(len(arrays))])


def calls(name: str) -> Iterator[Expression]:
    """Calls of a function with one to three arguments, the first of them a column."""
    columns: list[Expression] = [Column(place, f"c{place}", kind) for place, kind in enumerate(_KINDS)]
    constants: list[Expression] = [literal(word) for word in _WORDS]
    for first in columns:
        for count in range(3):
            for others in itertools.product([*columns[:2], *constants], repeat=count):
                try:
                    yield resolve(name, (first, *others))
                except UserError:
                    continue


def delay(expression: Expression, batch: pa.RecordBatch) -> float | None:
    """Seconds from the flag to the end; None where it had ended before."""
    raised: list[float] = []

    def unwanted() -> str | None:
        return "the flag" if raised else None

    timer = threading.Timer(0.05, lambda: raised.append(time.perf_counter()))
    timer.start()
    try:
        with within(Limit(unwanted=unwanted)):
            evaluate(expression, batch)
    except (CancelledWorkError, MemoryError, pa.ArrowException):
        pass
    finally:
        ended = time.perf_counter()
        timer.cancel()
        timer.join()
    return ended - raised[0] if raised and raised[0] < ended else None


def main() -> None:
    """Measure every function, and print the slowest to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--each", type=int, default=12, help="how many calls of a function are tried")
    options = parser.parse_args()
    found: list[tuple[float, str]] = []
    tried = 0
    for long in (True, False):
        batch = rows(long)
        for name in sorted(FUNCTIONS):
            accepted = list(calls(name))
            for call in accepted[:: max(1, len(accepted) // options.each)]:
                tried += 1
                seconds = delay(call, batch)
                if seconds is not None:
                    what = shortened(render(call), 80)
                    found.append((seconds, f"{what}, {'long' if long else 'many'} values"))
    found.sort(reverse=True)
    print(f"{tried:,} calls, {len(found):,} of them still at work when the flag was raised")
    for seconds, what in found[: options.worst]:
        print(f"{seconds * 1e3:8.1f} ms  {what}")


if __name__ == "__main__":
    main()
