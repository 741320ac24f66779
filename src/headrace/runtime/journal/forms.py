"""What readers of a query's results have to know of the query, as a store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.algebra.tunings.in_force import SizedWindow
from headrace.expressions.tree import Column, SortKey
from headrace.runtime.journal.sizes import packed_tuning, unpacked_tuning
from headrace.schema import Field, Schema, sql_type, type_named
from headrace.time import TimeDomain

_INSTANTS: Final = {
    TimeDomain.TIMESTAMP: "instants that are TIMESTAMPs",
    TimeDomain.INTEGER: "instants that are integers",
}


@dataclass(frozen=True)
class Form:
    """The form of a query's answer.

    Attributes:
        schema: its columns.
        domain: what its instants count.
        steps: how far the instants of its stream are apart, and by how much they are above multiples of that;
            None if it is not a stream of instants.
        order: the columns by which a snapshot's rows are sorted.
        reads: the streams that it reads.
        sizes: its windows and granules within bounds, and the shares of rows that are kept.
    """

    schema: Schema
    domain: TimeDomain
    steps: tuple[int, int] | None
    order: tuple[SortKey, ...]
    reads: tuple[str, ...]
    sizes: tuple[SizedWindow, ...] = ()

    @property
    def is_events(self) -> bool:
        """Whether the answer is a stream of events, whose rows are of an instant each."""
        return self.steps == (1, 0)

    def is_like(self, other: Form) -> bool:
        """Whether an answer of one form can go on in the other: with the same columns and instants."""
        return self.unlike(other) is None

    def unlike(self, other: Form) -> str | None:
        """The part of another form in which an answer of this one cannot go on; None where it can.

        Args:
            other: of the answer that is to follow.
        """
        if self.schema != other.schema:
            return f"other columns, {other.schema}"
        if self.domain is not other.domain:
            return f"{_INSTANTS[other.domain]} in place of {_INSTANTS[self.domain]}"
        if self.steps != other.steps:
            return f"{_rows(other.steps)} in place of {_rows(self.steps)}"
        return None


def _rows(steps: tuple[int, int] | None) -> str:
    """The rows of an answer that is a stream of such instants, or of none."""
    match steps:
        case None:
            return "rows that last"
        case (1, _):
            return "rows of an instant each"
        case (every, phase):
            after = f", {phase % every} after multiples" if phase % every else ""
            return f"rows of every {every} instants{after}"


def packed_form(form: Form) -> dict[str, Any]:
    """A form as JSON has it."""
    said: dict[str, Any] = {
        "columns": [[field.name, sql_type(field.type)] for field in form.schema],
        "domain": form.domain.value,
        "steps": form.steps,
        "order": [
            [key.expression.index, key.descending, key.nulls_first]
            for key in form.order
            if isinstance(key.expression, Column)
        ],
        "reads": form.reads,
    }
    if form.sizes:
        said["sizes"] = [{**packed_tuning(one.tuning), "back": one.back} for one in form.sizes]
    return said


def unpacked_form(content: Mapping[str, Any]) -> Form:
    """A form from its JSON.

    Raises:
        KeyError: a part is missing.
        ValueError: there is no such type or time domain.
    """
    schema = Schema(tuple(Field(name, type_named(text)) for name, text in content["columns"]))
    steps = content["steps"]
    return Form(
        schema,
        TimeDomain(content["domain"]),
        None if steps is None else (steps[0], steps[1]),
        tuple(
            SortKey(Column(index, schema[index].name, schema[index].type), descending, nulls_first)
            for index, descending, nulls_first in content["order"]
        ),
        tuple(content["reads"]),
        tuple(SizedWindow(unpacked_tuning(one), one["back"]) for one in content.get("sizes", ())),
    )
