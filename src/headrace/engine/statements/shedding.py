"""SHOW SHEDDING: what a run needs of its time, and which rows are kept for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.engine.shown.status import Status
from headrace.language.statements.catalog import Option
from headrace.runtime.driver.facts.left_out import ValuesLeftOut
from headrace.runtime.driver.settings import Managing
from headrace.runtime.driver.shedder.findings import TIMES, ShedShare
from headrace.steps import share_text

SHEDDING: Final = (
    "what", "now", "utility", "least", "would_be", *(f"at_{times}x" for times in TIMES), "saves", "why",
)  # fmt: skip
"""The columns."""
_LEAST: Final = "least utility of rows"
_KEPT: Final = ": all rows are kept, but where somebody has asked for less"


def shedding_rows(status: Status | None, settings: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The findings of the shedder: first the run's load, then each share and threshold that may change.

    Args:
        status: of a run that goes on or is over; None if nothing has been run.
        settings: how runs go on, as SHOW SETTINGS has it.
    """
    if status is None:
        return []
    found, others = status.shedding, ("",) * (len(SHEDDING) - 3)
    values = [one for one in dict.fromkeys(query.values for query in status.queries) if one]
    if found is None:
        return [("time needed", "", *others, _unbounded(settings)), *map(_values_row, values)]
    needed = "" if found.needed is None else f"{100 * found.needed:.0f} %"
    behind = "" if found.behind is None else f"; rows wait for {found.behind:.2g} s"
    told = {(one.streams, one.loss): one.text for one in values}
    rows = [_row(one, told.get((one.tuning.streams, one.tuning.loss), "")) for one in found.shares]
    return [("time needed", needed, *others, f"{found.text}{behind}"), *rows]


def _row(one: ShedShare, told: str) -> tuple[str, ...]:
    """A share, or a threshold with which rows are left out by it, which it tells."""
    shares = (one.least, one.wanted, *one.at)
    what = f"{'rows' if one.by_values is None else _LEAST} of {', '.join(one.tuning.streams)}"
    return (
        f"{what} {one.tuning.loss}",
        *(share_text(one.number(one.share)), f"{one.utility:.3g}"),
        *(share_text(one.number(share)) for share in shares),
        f"{100 * one.saves:.2g} % for 0.1",
        "; ".join(filter(None, (told, one.why))),
    )


def _values_row(one: ValuesLeftOut) -> tuple[str, ...]:
    """The least utility of rows that are kept by their values, where there is no shedder."""
    what = f"{_LEAST} of {', '.join(one.streams)} {one.loss}"
    return (what, share_text(one.threshold), *("",) * (len(SHEDDING) - 3), one.text)


def _unbounded(settings: Sequence[tuple[str, ...]]) -> str:
    """Why the shedder has found nothing."""
    said = {name: value for name, value, who in settings if who != "default"}
    bound = said.get(Option.LATENCY_BOUND.value)
    if bound is None:
        return f"there is no latency_bound{_KEPT}"
    off = said.get(Option.SHEDDER.value) == Managing.OFF.value
    return f"latency_bound is {bound}, and " + (
        f"the shedder is off{_KEPT}" if off else "nothing was measured yet"
    )
