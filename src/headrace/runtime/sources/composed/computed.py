"""Columns that are computed of those of an input when it is read; positions are those of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from headrace.elements import record_batch
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.tree import Expression, columns_of, transform_columns
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.rows.contract import Read, Rejected, SplitSource
from headrace.runtime.writing.texts import row_texts
from headrace.schema import Field, Schema


@dataclass(frozen=True)
class ComputedColumns:
    """Columns, some of which are computed of the others.

    Attributes:
        given: those that an input has.
        items: the names of the further ones, and what each is over all that are given.
    """

    given: Schema
    items: tuple[tuple[str, Expression], ...] = ()

    @cached_property
    def schema(self) -> Schema:
        """Those that are given, then the computed ones."""
        computed = (Field(name, expression.type) for name, expression in self.items)
        return Schema((*self.given, *computed))

    def over(self, source: SplitSource) -> SplitSource:
        """An input that has at least the given columns that are read of it, with the computed ones."""
        return ComputedSource(source, self) if self.items else source

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The given columns of which some of all columns are made."""
        asked = [expression for name, expression in self.items if name in columns]
        places = sorted({place for expression in asked for place in columns_of(expression)})
        computed = {name for name, _ in self.items}
        plain = (name for name in columns if name not in computed)
        return tuple(dict.fromkeys([*plain, *(self.given.names[place] for place in places)]))

    def computed(self, read: Read, columns: Sequence[str]) -> Read:
        """Rows with some of all columns; one of which a column cannot be computed is rejected.

        Args:
            read: rows with the columns that are `needed`.
            columns: the names of those that are wanted.
        """
        chosen = read.rows.schema.names
        items = {name: _over(one, chosen, self.given.names) for name, one in self.items if name in columns}
        outcomes = {name: evaluate(expression, read.rows) for name, expression in items.items()}
        values = {name: read.rows.column(place) for place, name in enumerate(chosen)}
        values |= {name: outcome.values for name, outcome in outcomes.items()}
        schema = self.schema.select(tuple(self.schema.names.index(name) for name in columns))
        rows = record_batch([values[name] for name in columns], schema, read.rows.num_rows)
        reasons: dict[int, str] = {}
        for name, outcome in outcomes.items():
            for reason, mask in outcome.failures:
                for row in np.flatnonzero(mask).tolist():
                    reasons.setdefault(row, f"{name} cannot be computed: {reason}")
        if not reasons:
            return replace(read, rows=rows)
        failed = sorted(reasons)
        texts = row_texts(read.rows.take(pa.array(failed)))
        places = [""] * len(failed) if read.places is None else read.places.find(np.array(failed))
        found = zip(failed, texts, places, strict=True)
        rejected = [Rejected(text, reasons[row], place) for row, text, place in found]
        good = np.delete(np.arange(rows.num_rows), failed)
        kept = None if read.places is None else read.places.kept(good)
        return Read(rows.take(good), (*read.rejected, *rejected), kept)


@runtime_checkable
class SaysColumns(Protocol):
    """An input that says which columns it has, also those that nobody has declared."""

    @property
    def found(self) -> tuple[str, ...]:
        """Their names, as far as they are known."""
        ...


def found_in(source: SplitSource) -> tuple[str, ...]:
    """The columns that an input is known to have; none where it does not say so."""
    return source.found if isinstance(source, SaysColumns) else ()


@dataclass(frozen=True)
class ComputedSource:
    """An input with further columns.

    Attributes:
        input: it.
        columns: what they are.
    """

    input: SplitSource
    columns: ComputedColumns

    @property
    def schema(self) -> Schema:
        """The columns of the input, then the computed ones."""
        return self.columns.schema

    @property
    def found(self) -> tuple[str, ...]:
        """The columns that the input is known to have; none where it does not say so."""
        return found_in(self.input)

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
        for read in self.input.read(start, end, self.columns.needed(columns)):
            yield self.columns.computed(read, columns)


def _over(expression: Expression, chosen: Sequence[str], names: Sequence[str]) -> Expression:
    """An expression over all columns as one over some of them."""
    return transform_columns(expression, lambda one: replace(one, index=chosen.index(names[one.index])))
