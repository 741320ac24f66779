"""A durable store, read without running its queries; another process may be at work on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from headrace.engine.asking.question import QuestionLimits
from headrace.engine.asking.tables import ask
from headrace.engine.query.query_list import QueryList
from headrace.engine.shown.display import html_of_rows
from headrace.engine.views.readable import Readable
from headrace.errors import StoreError, UserError
from headrace.language.named_values import ParameterValue
from headrace.runtime.intake.letters import read_letters
from headrace.runtime.intake.retained import not_kept, read_retained
from headrace.runtime.journal.forms import Form
from headrace.runtime.journal.gap import Gap
from headrace.runtime.journal.inspect import CommittedStore, committed
from headrace.runtime.results.answer_sizes import AnswerSizes
from headrace.runtime.results.dead_letters import dead_letters
from headrace.runtime.results.reader import ResultReader
from headrace.schema import Schema
from headrace.time import BEGINNING, TimeDomain


def open_store(folder: str | Path) -> StoredDatabase:
    """A durable store's answers, as far as they are committed; nothing is run, locked or changed.

    Args:
        folder: the folder of `storage`. A run may be at work on it: what is read is what is committed then.

    Raises:
        StoreError: it is not a store, has another layout, or is damaged.
    """
    path = Path(folder)
    committed(path)
    return StoredDatabase(path)


class StoredDatabase:
    """The queries of a durable store, to be read; made by `headrace.open`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        names = ", ".join(query.name for query in self.queries) or "none"
        return f"<StoredDatabase {self._folder}; queries: {names}>"

    def _repr_html_(self) -> str:
        rows = map(Readable.described, self.queries)
        return html_of_rows(("query", "columns", "answer"), rows, str(self._folder))

    def __getitem__(self, name: str) -> StoredQuery:
        """The query of a name, whatever its case.

        Raises:
            UserError: there is no such query.
        """
        return self.queries[name]

    @property
    def queries(self) -> QueryList[StoredQuery]:
        """The queries that the store is for, by name.

        Raises:
            StoreError: it was written by a Headrace that did not record what their answers look like.
        """
        found = committed(self._folder)
        description = found.description
        known = sorted(description.queries, key=description.name_of)
        return QueryList(
            StoredQuery(self._folder, query, description.name_of(query), _form_of(found, query))
            for query in known
        )

    def dead_letters(self, stream: str | None = None) -> pa.Table:
        """The rows that no query could use; see `Database.dead_letters`.

        Args:
            stream: if given, the rows of this stream, with all its columns, as far as they are kept.

        Raises:
            UserError: none are kept of that stream.
        """
        found = committed(self._folder)
        if stream is None:
            return dead_letters(found.store, found.results, found.description.name_of)
        files = next((files for name, files in found.letters.items() if name.lower() == stream.lower()), ())
        if not files:
            raise UserError(
                f"the store {self._folder} keeps no dead letters of {stream}",
                hint=f"declare it with DEAD LETTERS KEEP ALL: ALTER STREAM {stream} DEAD LETTERS KEEP ALL",
            )
        return pa.concat_tables([read_letters(found.store, file) for file in files])

    def rows(self, stream: str) -> pa.Table:
        """The rows of a stream that are kept by `RETAIN`, in the order of the epochs that took them.

        Raises:
            UserError: no rows of such a stream are kept.
        """
        found = committed(self._folder)
        kept = next((kept for name, kept in found.retained.items() if name.lower() == stream.lower()), None)
        if kept is None or not kept.files:
            raise not_kept(stream)
        return pa.concat_tables([read_retained(found.store, file) for file in kept.files])

    def ask(
        self,
        question: str,
        *,
        seconds: float = 30.0,
        memory: int = 1_000,
        threads: int = 2,
        rows: int = 10_000_000,
        parameters: Mapping[str, ParameterValue] | None = None,
    ) -> pa.Table:
        """The answer of a question that is asked once, over what has been committed; see `Database.ask`.

        Raises:
            UserError: as `Database.ask` does.
        """
        return ask(self, question, QuestionLimits(seconds, memory, threads, rows), parameters)


class StoredQuery(Readable):
    """A query's answer in a store, as far as it is committed when it is read."""

    def __init__(self, folder: Path, query: str, name: str, form: Form) -> None:
        self._folder = folder
        self._query = query
        self._form = form
        self.name = name

    def _repr_html_(self) -> str:
        return super()._repr_html_() or self._html_of_columns()

    @property
    def schema(self) -> Schema:
        """The answer's columns."""
        return self._form.schema

    @property
    def domain(self) -> TimeDomain:
        """What the answer's instants count."""
        return self._form.domain

    def _reader(self) -> ResultReader:
        found = committed(self._folder)
        query = self._query
        if query in found.failed:
            message, hint = found.failed[query]
            raise UserError(f"{self.name} failed: {message}", hint=hint)
        if not found.description.keeps_results:
            raise UserError(f"the store {self._folder} keeps no results", hint="run it with keep_results")
        start = found.description.start_of(query)
        # One that was dropped and defined anew meanwhile has another form.
        form = _form_of(found, query)
        epochs = tuple(part for part in found.results if part.epoch >= start and query in part.heartbeats)
        carried = epochs[-1].carried.get(query) if epochs else None
        return ResultReader(query, form, found.store, epochs, carried, start, self.name)

    @property
    def is_events(self) -> bool:
        """Whether the answer is a stream of events, whose rows are of an instant each."""
        return self._form.is_events

    def _gaps(self) -> tuple[Gap, ...]:
        return committed(self._folder).description.gaps_of(self._query)

    def _sizes(self) -> AnswerSizes:
        found = committed(self._folder).description
        form = found.form_of(self._query)
        windows = () if form is None else form.sizes
        return AnswerSizes(found.tunings, windows, found.sized_from(self._query))

    def _newest(self) -> int:
        seen = committed(self._folder).arrivals
        return max((seen[name].latest for name in self._form.reads if name in seen), default=BEGINNING)


def _form_of(found: CommittedStore, query: str) -> Form:
    form = found.description.form_of(query)
    if form is None:
        name = found.description.name_of(query)
        raise StoreError(
            f"the store {found.store.path} does not say what the answer of {name} looks like",
            hint="its queries were dropped, or an earlier Headrace wrote it: run it once with this one",
        )
    return form
