"""Columns that are computed of those of an input when it is read; positions are those of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from headrace.elements import record_batch
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.tree import Expression, columns_of, transform_columns
from headrace.runtime.sources.contract import Read, Rejected, SplitSource
from headrace.runtime.sources.remote import Place
from headrace.runtime.writing.texts import row_texts
from headrace.schema import Field, Schema


@dataclass(frozen=True)
class ComputedSource:
    """An input with further columns.

    Attributes:
        input: it.
        items: the names of the further columns, and what each is over all columns of the input.
    """

    input: SplitSource
    items: tuple[tuple[str, Expression], ...]

    @cached_property
    def schema(self) -> Schema:
        """The columns of the input, then the computed ones."""
        computed = (Field(name, expression.type) for name, expression in self.items)
        return Schema((*self.input.schema, *computed))

    @property
    def size(self) -> int:
        """As the input's."""
        return self.input.size

    @property
    def rows(self) -> int:
        """As the input's."""
        return self.input.rows

    @property
    def borders(self) -> Sequence[int]:
        """As the input's."""
        return self.input.borders

    def weigh(self, start: int, end: int) -> int:
        """Bytes of the input."""
        return self.input.weigh(start, end)

    @property
    def paths(self) -> tuple[Place, ...]:
        """As the input's."""
        return self.input.paths

    def mark(self, position: int) -> str:
        """As the input's."""
        return self.input.mark(position)

    def read(self, start: int, end: int, columns: tuple[str, ...]) -> Iterator[Read]:
        """The rows of the positions `[start, end)`; one whose column cannot be computed is rejected."""
        items = {name: expression for name, expression in self.items if name in columns}
        places = {place for expression in items.values() for place in columns_of(expression)}
        names = self.input.schema.names
        plain = [name for name in columns if name not in items]
        wanted = list(dict.fromkeys([*plain, *(names[place] for place in sorted(places))]))
        moved = {name: _over(expression, wanted, names) for name, expression in items.items()}
        for read in self.input.read(start, end, tuple(wanted)):
            yield self._computed(read, moved, columns)

    def _computed(self, read: Read, items: dict[str, Expression], columns: tuple[str, ...]) -> Read:
        outcomes = {name: evaluate(expression, read.rows) for name, expression in items.items()}
        given = {name: read.rows.column(place) for place, name in enumerate(read.rows.schema.names)}
        given |= {name: outcome.values for name, outcome in outcomes.items()}
        schema = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        rows = record_batch([given[name] for name in columns], schema, read.rows.num_rows)
        reasons: dict[int, str] = {}
        for name, outcome in outcomes.items():
            for reason, mask in outcome.failures:
                for row in np.flatnonzero(mask).tolist():
                    reasons.setdefault(row, f"{name} cannot be computed: {reason}")
        if not reasons:
            return Read(rows, read.rejected)
        failed = sorted(reasons)
        texts = row_texts(read.rows.take(pa.array(failed)))
        rejected = [Rejected(text, reasons[row], "") for row, text in zip(failed, texts, strict=True)]
        return Read(rows.take(np.delete(np.arange(rows.num_rows), failed)), (*read.rejected, *rejected))


def _over(expression: Expression, chosen: list[str], names: Sequence[str]) -> Expression:
    """An expression over all columns as one over some of them."""
    return transform_columns(expression, lambda one: replace(one, index=chosen.index(names[one.index])))
