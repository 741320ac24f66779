"""Queries that are brought to the present beside a run, while others come and go."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.errors import as_ours
from headrace.runtime.driver.beside.joining import brought
from headrace.runtime.driver.beside.starting_at import CatchingUp, CatchUp
from headrace.runtime.driver.change.caught_up import Joining
from headrace.runtime.driver.epoch.run import Run


@dataclass(frozen=True, eq=False)
class Ahead:
    """A query that is being brought to the present, and is to join when whoever asked for it says so.

    Attributes:
        query: it.
        arrived: resolved when it has taken all rows that there were; fails as the query does.
    """

    query: CatchUp
    arrived: Future[None] = field(default_factory=Future)


class CatchingUps:
    """The queries that are brought to the present, of a live run; its thread is the only user.

    They come near the present one after the other, that with the fewest rows left first: who adds a query
    over the last minutes does not wait for one over years. Then they wait, without holding up others, until
    they are taken: what has come meanwhile is taken in with that. As long as there is one no row is let go
    of.

    Args:
        run: the run that they are to join.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._all: list[Ahead] = []

    @property
    def first(self) -> Ahead | None:
        """The one that comes nearer; None if all are there."""
        coming = (one for one in self._all if not one.arrived.done())
        return min(coming, key=lambda one: one.query.progress.left, default=None)

    @property
    def progress(self) -> CatchingUp | None:
        """How far the first one is, or one that is about to join; None where there is none."""
        shown = self.first or next(iter(self._all), None)
        return None if shown is None else shown.query.progress

    def add(self, query: CatchUp) -> Ahead:
        """Begin to bring a query to the present."""
        found = Ahead(query)
        self._all = [*self._all, found]
        self._run.keeps_all_rows = True
        return found

    def step(self) -> bool:
        """Run an epoch for the one that comes nearer; whether there was one. What goes wrong it hears of."""
        first = self.first
        if first is None:
            return False
        try:
            if not first.query.step():
                first.arrived.set_result(None)
        except Exception as error:
            self.give_up(first)
            first.arrived.set_exception(as_ours(error, "what brings the query to the present"))
        return True

    def take(self, ahead: Ahead) -> Joining:
        """Bring a query to the very present; what it begins with.

        Raises:
            UserError: the query fails on rows that were kept.
            StoreError: rows cannot be read.
        """
        try:
            return brought(ahead.query)
        finally:
            self._remove(ahead)

    def give_up(self, ahead: Ahead) -> None:
        """Forget a query that is not to join, with what was written for it."""
        self._remove(ahead)
        ahead.query.discard()

    def end(self, error: Exception) -> None:
        """Let those who wait hear that the run has ended, and why."""
        left, self._all = self._all, []
        for one in left:
            if not one.arrived.done():
                one.arrived.set_exception(error)

    def _remove(self, ahead: Ahead) -> None:
        self._all = [one for one in self._all if one is not ahead]
        self._run.keeps_all_rows = bool(self._all)
