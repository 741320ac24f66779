"""A shell's database in this process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from headrace.algebra.properties import sources_of
from headrace.cli.shell.json_rows import rows_of_json
from headrace.cli.shell.target import Made, Ran, Result, Told
from headrace.engine import Database, Query
from headrace.engine.inputs.options import FORMATS, SINKS
from headrace.errors import UserError
from headrace.language.catalog import DerivedStream, StreamInfo
from headrace.language.completion.candidates import KnownNames
from headrace.language.named_values import ParameterValue
from headrace.runtime.writing.texts import count
from headrace.schema import Schema


class LocalTarget:
    """A database in this process.

    Args:
        db: new, or of a durable store. It is closed with the target.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._started = False

    def execute(self, text: str, base: Path) -> list[Result]:
        """Carry out statements; see `headrace.Database.execute`."""
        return [_result(item) for item in self._db.execute(text, base)]

    def known(self) -> KnownNames:
        """The names that statements can use."""
        db = self._db
        return KnownNames(
            {entry.name: _columns(entry) for entry in db.streams.values()},
            {entry.name: tuple(entry.schema.names) for entry in db.relations.values()},
            {query.name: tuple(query.schema.names) for query in db.queries},
            sinks=tuple(sink.name for sink in db.served.sinks),
            formats=FORMATS,
            kinds_of_sinks=SINKS,
        )

    def answer(self, query: str, view: str) -> pa.Table:
        """A view of a query's answer: history, changes, stream or latest."""
        found = self._db[query]
        match view:
            case "history":
                return found.history()
            case "changes":
                return found.changes()
            case "stream":
                return found.stream()
            case "latest":
                return found.latest()
            case _:
                raise UserError(
                    f"there is no view {view}", hint="ask for history, changes, stream, latest or tail"
                )

    def tail(self, query: str, rows: int) -> pa.Table:
        """The newest rows of a query's answer, the newest one last."""
        return self._db[query].tail(rows)

    def is_events(self, query: str) -> bool:
        """Whether a query's answer is a stream of events."""
        return self._db[query].is_events

    def moment(self, query: str) -> tuple[object, str]:
        """The last epoch, and how far the query's answer is."""
        status = self._db.status
        return (status.epoch, status.running), f"epoch {status.epoch}, {self._db[query].described()[2]}"

    def ask(self, question: str, parameters: Mapping[str, ParameterValue]) -> pa.Table:
        """The answer of a question."""
        return self._db.ask(question, parameters=parameters)

    def push(self, stream: str, rows: str) -> bool:
        """Add rows; returns when they are committed."""
        return self._db.push(stream, rows_of_json(rows, self._schema_of(stream)))

    def why(self, query: str) -> str:
        """Why a query has no output, or no newer one."""
        return str(self._db.why(query))

    def status(self) -> str:
        """How far everything is."""
        return str(self._db.status)

    def settle(self) -> bool:
        """Start the run if a query reads an endless stream; where it has ended by itself, raise why."""
        if self._db.running:
            return False
        if self._started:
            self._started = False
            self._db.stop()
        if not self._is_endless:
            return False
        self._db.start()
        self._started = True
        return True

    @property
    def _is_endless(self) -> bool:
        read = {source.name for query in self._db.queries for source in sources_of(query.plan)}
        return bool(read.intersection(self._db.endless))

    def run(self) -> Ran | None:
        """Answer all queries."""
        if self._is_endless:
            self._db.start()
            self._started = True
            return None
        summary = self._db.run(progress=False)
        failed = tuple((name, message) for name, message, _ in summary.failed)
        names = {name for name, _ in failed}
        answers = tuple(
            (query.name, query.history()) for query in self._db.queries if query.name not in names
        )
        read = f"{count(summary.rows, 'row')} in {summary.seconds:.2f} s, {count(summary.epochs, 'epoch')}"
        letters = f", {count(summary.dead_letters, 'dead letter')}" if summary.dead_letters else ""
        return Ran(answers, read + letters, failed)

    def stop(self) -> None:
        """End the run."""
        self._started = False
        self._db.stop()

    def close(self) -> None:
        """Stop the run and close the database."""
        if self._db.running:
            with suppress(UserError):
                self._db.stop()
        self._db.close()

    def _schema_of(self, stream: str) -> Schema:
        entry = self._db.streams.get(stream.lower())
        return entry.schema if isinstance(entry, StreamInfo) else Schema(())


def _result(item: Query | Any) -> Result:
    if isinstance(item, Query):
        notes = (f"note at {note}" for note in item.notes)
        return Made(item.name, tuple(notes))
    return Told(str(item))


def _columns(entry: StreamInfo | DerivedStream) -> tuple[str, ...]:
    match entry:
        case StreamInfo():
            return tuple(entry.content.names)
        case DerivedStream(plan=plan):
            return tuple(plan.schema.names)
        case _:
            assert_never(entry)
