"""The database of a server: statements and rows of many clients, and the run that answers them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from headrace.algebra.properties import names_read
from headrace.engine import Database, Policy, Query
from headrace.engine.asking.question import QuestionLimits
from headrace.engine.asking.tables import ask
from headrace.engine.shown.status import Status
from headrace.engine.views.readable import Readable
from headrace.errors import PolicyError, SourceError, UserError
from headrace.language.catalog import DerivedStream, RelationInfo, StreamInfo
from headrace.language.named_values import ParameterValue
from headrace.runtime.writing.texts import row_texts
from headrace.schema import Schema, sql_type
from headrace.server.access import Caller
from headrace.server.errors import RequestError, not_found
from headrace.server.limits import RequestLimits
from headrace.server.visible import sees_text, shown_letter, shown_letters

_STOP_TIMEOUT: Final = 10.0
"""Seconds that an epoch and the sinks have when the server stops."""

_LETTERS_SHOWN: Final = 1_000
"""So many dead letters of one request are in its answer."""


@dataclass(frozen=True)
class Session:
    """A database that clients share.

    Attributes:
        db: the database.
        policy: what the statements of administrators may reach; others may reach less.
        base: the folder that relative paths in statements start from.
        limits: what one request may take.
    """

    db: Database
    policy: Policy
    base: Path
    limits: RequestLimits

    def carry_out(
        self, text: str, caller: Caller, parameters: Mapping[str, ParameterValue] | None = None
    ) -> list[dict[str, Any]]:
        """Carry out statements, and begin to answer if there is something to answer now.

        Args:
            text: SQL.
            caller: who wants it.
            parameters: the values of `:name` in it, by name.

        Raises:
            UserError: a statement is wrong; those before it have taken effect.
        """
        caller.check_unlimited("a statement")
        try:
            results = self.db.served.carry_out(text, self.base, caller.policy(self.policy), parameters)
        finally:
            # Also where a later statement is wrong: those before it have taken effect. A run that has ended
            # begins again by itself.
            if self.db.served.ended_by is None:
                self.db.served.start()
        return [_result(result) for result in results]

    def stop(self) -> None:
        """End the run between two epochs; one that takes long is given up, and counts for nothing."""
        self.db.served.stop(_STOP_TIMEOUT)

    def status(self) -> Status | None:
        """The status of the run, or None where nothing has been run."""
        try:
            return self.db.status
        except UserError:
            return None

    def query(self, name: str, caller: Caller) -> Query:
        """The query of a name.

        Raises:
            RequestError: there is none that they may see.
        """
        caller.check_name("query", name)
        try:
            return self.db[name]
        except (UserError, KeyError):
            raise not_found(f"query {name}", "GET /queries lists them") from None

    def stream(self, name: str, caller: Caller) -> StreamInfo | DerivedStream:
        """The stream of a name, or the changes of a relation, if rows can be sent to it.

        Raises:
            RequestError: there is none that they may see.
        """
        caller.check_name("stream", name)
        relation = self.db.relations.get(name.lower())
        if relation is not None and relation.changes is not None and relation.name in self.db.pushed:
            return replace(relation.changes.stream, changes=relation.changes.by)
        found = self.db.streams.get(name.lower())
        if found is None:
            raise not_found(f"stream {name}", "GET /streams lists them")
        return found

    def pushed(self, name: str, caller: Caller) -> StreamInfo:
        """As `stream`, of one to which rows can be sent.

        Raises:
            RequestError: there is none that they may see, or its rows come from elsewhere.
        """
        found = self.stream(name, caller)
        if not isinstance(found, StreamInfo) or found.name not in self.db.pushed:
            raise RequestError(
                "conflict", 409, f"the rows of {found.name} come from elsewhere",
                "rows are sent to streams created FROM push",
            )  # fmt: skip
        return found

    def push(
        self, stream: str, rows: pa.Table, caller: Caller, producer: str | None, sequence: int | None
    ) -> tuple[int, Future[bool]]:
        """Add rows to a pushed stream; the producers of one key are not those of another one.

        Returns:
            The epoch before them, and what is resolved when they are committed.

        Raises:
            BusyError: epochs have fallen behind.
            UserError: the rows do not fit the stream, or no query reads it.
        """
        served = self.db.served
        epoch = served.epoch
        named = None if producer is None else caller.producer(producer)
        return epoch, served.push(stream, rows, named, sequence, self.limits.patience)

    def has_letters_after(self, epoch: int) -> bool:
        """Whether there are dead letters in the epochs after one; takes no time to speak of."""
        return self.db.served.has_letters_after(epoch)

    def letters_of(self, stream: str, rows: pa.Table, epoch: int, caller: Caller) -> list[dict[str, Any]]:
        """Which of these rows became dead letters in the epochs after one.

        They are found by what they hold in the columns that queries read, which is all that dead letters
        have: of equal rows that several clients send at once, each may be shown the other's.
        """
        reading = frozenset(query.name for query in self.db.queries if stream in names_read(query.plan))
        known = self.db.served.letters_after(epoch).to_pylist()
        # Rows that a query fails at are letters of that query, of no stream.
        letters = [
            one for one in known if one["stream"] == stream or (not one["stream"] and one["query"] in reading)
        ]
        sent: dict[tuple[str, ...], Counter[str]] = {}
        found = []
        for letter in letters:
            names = _columns_in(letter["row"])
            if names not in sent:
                sent[names] = _texts_of(rows, names)
            if sent[names][letter["row"]] > 0:
                sent[names][letter["row"]] -= 1
                found.append(letter)
        return [shown_letter(one, caller) for one in found[:_LETTERS_SHOWN]]

    def dead_letters(self, stream: str | None, caller: Caller) -> pa.Table:
        """The dead letters of all streams, or of one with its columns, as somebody may see them."""
        return shown_letters(self.db.dead_letters(stream), caller)

    def ask(
        self, question: str, caller: Caller, parameters: Mapping[str, ParameterValue] | None = None
    ) -> pa.Table:
        """The answer of a question that is asked once.

        Args:
            question: SQL of DuckDB's.
            caller: who asks.
            parameters: the values of `:name` in it, by name.

        Raises:
            UserError: the question is wrong, it exceeds a limit, or it reaches for something else.
        """
        limits = QuestionLimits(
            self.limits.seconds, self.limits.question_bytes // 1_000_000, rows=self.limits.result_rows
        )
        return ask(_Seen(self.db, caller), question, limits, parameters)


@dataclass(frozen=True)
class _Seen:
    """What somebody may ask about.

    Attributes:
        db: the database.
        caller: who asks.
    """

    db: Database
    caller: Caller

    def __getitem__(self, name: str, /) -> Readable:
        self._check(name)
        return self.db[name]

    def dead_letters(self, stream: str | None = None) -> pa.Table:
        """The dead letters of all streams, or of one with its columns."""
        if stream is None:
            if self.caller.only is not None:
                raise PolicyError(
                    "DEAD LETTERS needs a key for all names", hint="write DEAD LETTERS OF a stream"
                )
        else:
            self._check(stream)
        return shown_letters(self.db.dead_letters(stream), self.caller)

    def rows(self, stream: str) -> pa.Table:
        """The rows of a stream that are kept."""
        self._check(stream)
        return self.db.rows(stream)

    def _check(self, name: str) -> None:
        if not self.caller.sees(name):
            raise SourceError(f"there is no {name}")


def described_stream(stream: StreamInfo | DerivedStream, db: Database) -> dict[str, Any]:
    """A stream for JSON."""
    match stream:
        case StreamInfo():
            omissible = db.served.omissible(stream.name)
            return {
                "name": stream.name,
                "kind": "pushed" if stream.name in db.pushed else "source",
                "timestamp": stream.timestamp,
                "by_arrival": stream.by_arrival,
                "computed": list(stream.computed),
                **({} if omissible is None else {"omissible": asdict(omissible)}),
                "time": stream.domain.name,
                "columns": columns_of(stream.schema),
            }
        case DerivedStream():
            plan = stream.plan
            return {
                "name": stream.name,
                "kind": "derived",
                "timestamp": None,
                "time": plan.domain.name,
                "columns": columns_of(plan.schema),
            }


def described_relation(relation: RelationInfo) -> dict[str, Any]:
    """A relation for JSON."""
    return {
        "name": relation.name,
        "key": list(relation.key),
        "valid": None if relation.valid is None else list(relation.valid),
        "refreshed": relation.refreshed,
        "changing": relation.changes is not None,
        "columns": columns_of(relation.schema),
    }


def described_query(query: Query, db: Database, caller: Caller) -> dict[str, Any]:
    """A query for JSON."""
    _, _, answer = query.described()
    return {
        "name": query.name,
        "time": query.domain.name,
        "columns": columns_of(query.schema),
        "answer": answer,
        "events": query.is_events,
        "paused": db.served.paused(query.name),
        "notes": [
            {"message": note.message, "line": note.position.line, "column": note.position.column,
             "hint": note.hint}
            for note in (query.notes if sees_text(query, caller) else ())
        ],
    }  # fmt: skip


def columns_of(schema: Schema) -> list[dict[str, str]]:
    """Columns for JSON, with their types as SQL has them."""
    return [{"name": field.name, "type": sql_type(field.type)} for field in schema]


def _columns_in(letter: str) -> tuple[str, ...]:
    """The columns that a dead letter has, which is written as JSON."""
    try:
        found = json.loads(letter)
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, dict) else ()


def _texts_of(rows: pa.Table, names: tuple[str, ...]) -> Counter[str]:
    """How often rows occur, as dead letters with these columns would write them."""
    if not set(names) <= set(rows.column_names):
        return Counter()
    return Counter(text for batch in rows.select(list(names)).to_batches() for text in row_texts(batch))


def _result(result: Query | str | None) -> dict[str, Any]:
    match result:
        case None:
            return {"kind": "none"}
        case str():
            return {"kind": "text", "text": str(result)}
        case _:
            return {"kind": "query", "name": result.name, "columns": columns_of(result.schema)}
