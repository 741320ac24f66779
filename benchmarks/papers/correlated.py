"""The experiments of Gehrke, Korn and Srivastava (SIGMOD 2001) on correlated aggregates, run again.

How many values of a stream are above their average, and how many are at most (1 + epsilon) times their
minimum: of all so far (a landmark window), and of the last 500. The paper's four kinds of histograms with ten
buckets, beside true equidepth and equiwidth histograms and the heuristics without memory, by the root of the
mean squared error; and our exact answer, with what it keeps.

    PYTHONPATH=benchmarks python -m papers.correlated [--values 20000] [--plot docs/assets/correlated.svg]

Four streams. MULTIFRAC: 16 bits, each 1 with 20 percent. ZIPF: ranks up to 100,000 with the exponent .7; with
the 7 that is printed, 99 percent of the values would be 1. USAGE, in place of AT&T's: log-normal. Reverse:
the same, the larger half of it first. Of the average, buckets are made anew where it has left the interval
around it; at each step, as the text can be read too, the wholesale policies drift away, which a table shows.
Of sliding windows the interval has three standard errors on either side; the paper leaves its width open.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.cli.illustrations.spectrum_chart import saved
from papers.focused_histograms import (
    POLICIES,
    average,
    landmark_minimum,
    memoryless,
    rival,
    rmse,
    sliding_minimum,
)

WINDOW: Final = 500
EPSILON: Final = {"MULTIFRAC": 99, "ZIPF": 1000, "USAGE": 99, "reverse": 99}


@dataclass(frozen=True)
class Found:
    """An experiment.

    Attributes:
        exact: the exact answers.
        errors: by method the error so far at each step, RMSE.
    """

    exact: Sequence[float]
    errors: Mapping[str, Sequence[float]]


def streams(count: int) -> dict[str, list[float]]:
    """The values of each stream."""
    draw = np.random.default_rng(5)
    multifractal = (draw.random((count, 16)) < 0.2) @ 2.0 ** np.arange(16) + 1
    usage = np.floor(draw.lognormal(4, 1.5, count)) + 1
    ranks = np.arange(1, 100_001)
    shares = ranks**-0.7
    zipf = draw.choice(ranks, count, p=shares / shares.sum()).astype(float)
    falling = np.sort(usage)[::-1]
    halves = [draw.permutation(half) for half in (falling[: count // 2], falling[count // 2 :])]
    made = {"MULTIFRAC": multifractal, "ZIPF": zipf, "USAGE": usage, "reverse": np.concatenate(halves)}
    return {name: values.tolist() for name, values in made.items()}


def of_average(values: list[float], window: int | None, buckets: int = 10) -> Found:
    """COUNT{x : x > AVG(x)} by all methods."""
    answers, exact = _rivals(values, lambda _, mean: mean, True, window, buckets)
    for policy in POLICIES:
        answers[policy] = average(values, buckets, policy, window, errors=1.0 if window is None else 3.0)
    return Found(exact, {name: rmse(found, exact, window) for name, found in answers.items()})


def of_minimum(values: list[float], epsilon: float, window: int | None, buckets: int = 10) -> Found:
    """COUNT{x : x <= (1 + epsilon) MIN(x)} by all methods."""
    answers, exact = _rivals(values, lambda least, _: least * (1 + epsilon), False, window, buckets)
    if window is None:
        for name, resets in (("begins anew", True), ("goes on", False)):
            answers[name] = memoryless(values, epsilon, resets=resets)
    for policy in POLICIES:
        answers[policy] = (
            landmark_minimum(values, epsilon, buckets, policy)
            if window is None
            else sliding_minimum(values, epsilon, buckets, policy, window)
        )
    return Found(exact, {name: rmse(found, exact, window) for name, found in answers.items()})


def _rivals(
    values: list[float], bound: Callable[[float, float], float], above: bool, window: int | None, buckets: int
) -> tuple[dict[str, list[float]], list[float]]:
    deep, exact = rival(values, bound, above, buckets, deep=True, window=window)
    wide, _ = rival(values, bound, above, buckets, deep=False, window=window)
    return {"equidepth": deep, "equiwidth": wide}, exact


def ours(values: list[float], condition: str, window: int | None) -> tuple[list[int], int]:
    """The exact answer of a query at each step, and the rows that it keeps at most."""
    with hr.connect(runner="inline", buckets=1) as db:
        db.execute("CREATE STREAM s (x DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts")
        span = "UNBOUNDED" if window is None else window
        query = db.query(
            f"SELECT COUNT(*) FILTER (WHERE {condition}) AS n FROM s [RANGE {span}]", name="correlated"
        )
        db.start()
        most = 0
        for at in range(0, len(values), 500):
            part = values[at : at + 500]
            db.push("s", pa.table({"x": part, "ts": range(at, at + len(part))}))
            most = max(most, sum(one.state_rows for one in db.status.operators))
        answers = [0] * (len(values) - 1)
        for row in query.history().to_pylist():
            begin, end = row["valid_from"], row["valid_to"] or len(answers)
            answers[begin:end] = [row["n"]] * (min(end, len(answers)) - begin)
    return answers, most


def specification(found: Mapping[str, Found]) -> dict[str, Any]:
    """The errors of experiments as a Vega-Lite chart: a panel each, a line per method."""
    shown = ("equidepth", *POLICIES)
    panels = []
    for title, one in found.items():
        steps = range(WINDOW, len(one.exact), max(len(one.exact) // 80, 1))
        rows = [
            {"values": step, "RMSE": round(one.errors[name][step], 3), "method": name}
            for name in shown
            for step in steps
        ]
        panels.append(
            {
                "title": title,
                "data": {"values": rows},
                "width": 280,
                "height": 170,
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {
                    "x": {"field": "values", "type": "quantitative"},
                    "y": {"field": "RMSE", "type": "quantitative"},
                    "color": {"field": "method", "type": "nominal", "sort": list(shown)},
                },
            }
        )
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "concat": panels, "columns": 2}


def main() -> None:
    """Print tables, and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--values", type=int, default=20_000)
    parser.add_argument("--plot", type=Path, help="the picture goes there")
    asked = parser.parse_args()
    all_values = streams(asked.values)
    drawn: dict[str, Found] = {}
    for what in ("AVG", "MIN"):
        for window in (None, WINDOW):
            scope = "of all so far" if window is None else f"of the last {window}"
            title = (
                f"COUNT{{x : x > AVG(x)}} {scope}"
                if what == "AVG"
                else f"COUNT{{x : x <= (1 + e) MIN(x)}} {scope}"
            )
            print(f"\n{title}: RMSE at the end, of values up to")
            for name, values in all_values.items():
                found = (
                    of_average(values, window) if what == "AVG" else of_minimum(values, EPSILON[name], window)
                )
                cells = (f"{method} {errors[-1]:.1f}" for method, errors in found.errors.items())
                print(f"  {name:9} {found.exact[-1]:6.0f}:", ", ".join(cells), flush=True)
                if name == "MULTIFRAC" or (name == "reverse" and window is None):
                    drawn[f"{title}, {name}"] = found
    _print_growth(drawn["COUNT{x : x > AVG(x)} of all so far, MULTIFRAC"], all_values)
    _print_ours(all_values["MULTIFRAC"][:5_000])
    if asked.plot is not None:
        saved(specification(drawn), asked.plot)


def _print_growth(found: Found, values: Mapping[str, list[float]]) -> None:
    print(
        "\nOf the average of MULTIFRAC: in the paper equidepth histograms grow to 180, its own stay below 30."
    )
    size = len(found.exact)
    for name in ("equidepth", *POLICIES):
        steps = range(size // 5, size + 1, size // 5)
        print(f"  {name:19}", *(f"{found.errors[name][step - 1]:7.1f}" for step in steps))
    print("\nThe same, with buckets that are made anew at each step")
    for policy in POLICIES:
        answers = average(values["MULTIFRAC"], 10, policy, eager=True)
        print(f"  {policy:19} {rmse(answers, found.exact)[-1]:7.1f}")
    few = of_minimum(values["USAGE"], EPSILON["USAGE"], None, 5).errors
    print("\nMIN of USAGE with 5 buckets:", ", ".join(f"{name} {few[name][-1]:.1f}" for name in POLICIES))


def _print_ours(values: list[float]) -> None:
    print(f"\nOur answers of {len(values):,} values of MULTIFRAC, and the rows that are kept for them")
    for window in (None, WINDOW):
        for condition, bound, above in (
            ("x > AVG(x)", lambda _, mean: mean, True),
            ("x <= 100 * MIN(x)", lambda least, _: least * 100, False),
        ):
            answers, kept = ours(values, condition, window)
            _, exact = rival(values, bound, above, 10, deep=True, window=window)
            wrong = sum(one != other for one, other in zip(answers, exact, strict=False))
            print(f"  COUNT(*) FILTER (WHERE {condition}), {window or 'all'}: {wrong} differ, {kept:,} rows")


if __name__ == "__main__":
    main()
