"""A database as a server sees it: what is done for others over the network, and what they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.listed_sinks import ListedSink, listed_sinks
from headrace.engine.catalog.texts import catalog_text
from headrace.engine.inputs.inputs import Input
from headrace.engine.inputs.signatures import Signature
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.statements.statements import as_one, carry_out, move_of
from headrace.errors import UserError
from headrace.language.named_values import ParameterValue, with_values
from headrace.language.statements.catalog import CatalogKind
from headrace.runtime.driver.endless.withdrawal import check_wanted
from headrace.runtime.intake.given_rows import Omissible
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.inspect import Check, verify


@dataclass(frozen=True)
class KeptAnswer:
    """Which epochs of a query can be read, and how far its answer is.

    Attributes:
        start: the first epoch of the query; another query of the same name has another one.
        first: the first epoch whose changes are kept in full.
        last: the last epoch that is committed, the one before `start` if none is.
        heartbeat: up to where the answer is final (instant).
        horizon: up to where it is said (instant).
    """

    start: int
    first: int
    last: int
    heartbeat: int
    horizon: int


class Served:
    """What a server does with a database, besides what every program does.

    Args:
        core: the database's.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def carry_out(
        self, text: str, base: Path, policy: Policy, parameters: Mapping[str, ParameterValue] | None = None
    ) -> list[Query | str | None]:
        """Carry out statements as `Database.execute` does.

        Args:
            text: SQL.
            base: the folder that relative paths start from.
            policy: what the statements may reach.
            parameters: the values of `:name` in the text, by name.

        Returns:
            For each statement what it has given: a query, a text, or nothing.

        Raises:
            UserError: a statement is wrong; those before it have taken effect.
            WithdrawnError: nobody waits for the statements any more; those before have taken effect.
        """
        results: list[Query | str | None] = []
        valued = with_values(text, parameters)
        with valued.positions():
            for move, statements in groupby(self._core.statements(valued.text), move_of):
                with as_one(self._core, move):
                    for one in statements:
                        check_wanted()
                        results.append(carry_out(self._core, one, base, policy))
        return results

    def start(self) -> bool:
        """Start an endless run if there is something to answer and none is going on; whether it has."""
        with self._core.lock:
            if self._core.running or not self._core.definitions.answered:
                return False
            self._core.new_execution(adapt=True).start(None)
            return True

    def stop(self, timeout: float | None) -> None:
        """End the run between two epochs, if one is going on.

        Raises:
            UserError: the epoch does not end in time, or a sink has not taken everything.
        """
        if self._core.running:
            self._core.started.stop(timeout)

    def drop(self, kind: CatalogKind, name: str, *, cascade: bool = False) -> None:
        """Drop a stream, a relation, a query or a sink.

        Args:
            kind: which of them.
            name: its name.
            cascade: whether what is written over it, or delivers its answer, goes as well.

        Raises:
            UserError: there is no such thing, or something is written over it.
        """
        self._core.drop(kind, name, None, cascade=cascade)

    def signature(self, name: str) -> Signature | None:
        """The signature of rows of a stream or changes of a relation; None if they have none."""
        found = self._input(name)
        return None if found is None else found.signature

    def omissible(self, name: str) -> Omissible | None:
        """Which columns pushed rows, or changes, may leave out; None of what is not live."""
        found = self._input(name)
        stream = None if found is None else found.stream
        return Omissible.of(stream) if isinstance(stream, LiveStream) else None

    def _input(self, name: str) -> Input | None:
        inputs = self._core.definitions.inputs
        return next((one for known, one in inputs.items() if known.lower() == name.lower()), None)

    @property
    def epoch(self) -> int:
        """The last epoch that was committed, 0 if none was."""
        execution = self._core.execution
        return 0 if execution is None else execution.run.totals.epochs

    @property
    def ended_by(self) -> BaseException | None:
        """What has ended the run, or None."""
        return None if self._core.execution is None else self._core.execution.ended_by

    @property
    def sinks(self) -> tuple[ListedSink, ...]:
        """The sinks, and how far each of them is."""
        execution = self._core.execution
        return listed_sinks(self._core.definitions, () if execution is None else execution.sinks)

    @property
    def catalog(self) -> str:
        """A script that defines everything again; what SQL cannot say is named in comments."""
        return catalog_text(self._core.definitions.records.known.values())

    @property
    def waiting(self) -> Mapping[str, str]:
        """What the store has defined and could not be made, by its title, with the reason."""
        records = self._core.definitions.records
        return {records.known[key].title: why for key, why in records.waiting.items()}

    def limit_epochs(self, seconds: float) -> None:
        """Let operators work so long in an epoch where nobody says another limit (seconds)."""
        core = self._core
        core.settings = replace(core.settings, run=replace(core.settings.run, usual_timeout=seconds))

    def check_store(self) -> Check:
        """What reading every file of the durable store that counts has found; the run goes on.

        Raises:
            UserError: there is no durable store.
            StoreError: it cannot be read.
        """
        folder = self._core.settings.storage
        if folder is None:
            raise UserError("there is no durable store", hint="connect with storage=DIR")
        return verify(folder)

    def paused(self, query: str) -> bool:
        """Whether a query is paused."""
        found = self._core.definitions.find_query(query)
        return found is not None and self._core.definitions.is_paused(found)

    def push(
        self, stream: str, rows: Any, producer: str | None, sequence: int | None, patience: float
    ) -> Future[bool]:
        """Add rows to a pushed stream; resolved when they are committed, with False for a repeat.

        Args:
            stream: its name.
            rows: a table with its columns.
            producer, sequence: who pushes, and as which of its pushes, or None.
            patience: seconds to wait for room at most.

        Raises:
            BusyError: there is no room.
            UserError: the rows do not fit the stream, or no query reads it.
        """
        return self._core.started.push(stream, rows, producer, sequence, patience)

    def letters_after(self, epoch: int) -> pa.Table:
        """The dead letters of the epochs after one, in the form of `Database.dead_letters`."""
        return self._core.started.letters_after(epoch)

    def has_letters_after(self, epoch: int) -> bool:
        """Whether there are such rows; takes no time to speak of."""
        return self._core.started.has_letters_after(epoch)

    def kept(self, query: Query) -> KeptAnswer:
        """Which epochs of a query can be read.

        Raises:
            UserError: it has no answer: it was not run, or it failed.
        """
        reader = self._core.reader(query)
        last = reader.epochs[-1].epoch if reader.epochs else reader.start - 1
        return KeptAnswer(reader.start, reader.first, last, reader.heartbeat, reader.horizon)
