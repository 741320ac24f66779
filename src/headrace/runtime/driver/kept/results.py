"""What a run keeps: the results of epochs, and the files that hold them and its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.errors import DeadLetterError
from headrace.runtime.driver.kept.strictness import refuse_dead_letters
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import EpochOutcome
from headrace.runtime.journal.held_state import held
from headrace.runtime.journal.records import (
    EpochResults,
    StreamPoint,
    carried_files,
    point_parts,
    result_files,
)
from headrace.runtime.journal.retention import retained_from
from headrace.runtime.results.carried import carry_on
from headrace.runtime.store.crash_points import reach
from headrace.runtime.store.segments import FolderStore, Store
from headrace.runtime.tasks.messages import Manifest, StateKey
from headrace.time import INFINITY


class Kept:
    """The results that a run keeps, and the files of the store that nothing names any more.

    Args:
        store: where the files are.
        retain: of how many epochs results are kept; of all if None.

    Attributes:
        retain: the same, from the next commit on.
        results: of the epochs that are kept, oldest first.
        refused: what the epoch would have committed that had too many dead letters; None where none had.
        oldest_needed: says, after every commit, from which epoch on results are still to be read.
        allowed: how many dead letters there may be; any number if None.
    """

    def __init__(self, store: Store, retain: int | None) -> None:
        self._store = store
        self.retain = retain
        self.results: list[EpochResults] = []
        self.refused: EpochResults | None = None
        self.oldest_needed: Callable[[], int] = lambda: INFINITY
        self.allowed: int | None = None

    def files(self, state: Mapping[StateKey, Manifest], points: Mapping[str, StreamPoint]) -> set[str]:
        """The files of some state, and of what the results kept have carried on."""
        streams = {part.segment for part in point_parts(points)}
        return {*held(state).sizes.files, *streams, *carried_files(self.results)}

    def check(
        self, outcome: EpochOutcome, state: Mapping[StateKey, Manifest], points: Mapping[str, StreamPoint]
    ) -> None:
        """See that an epoch may count.

        Its dead letters stay until the run is forgotten: they are what its user wants to see.

        Args:
            outcome: what it would commit.
            state, points: those of the last commit.

        Raises:
            DeadLetterError: there are more dead letters with it than are allowed.
        """
        results = outcome.commit.results
        try:
            refuse_dead_letters(
                self.allowed, outcome.commit.totals.dead_letters, self._store, [*self.results, results]
            )
        except DeadLetterError:
            self.refused = results
            self.sweep((set(outcome.written) | carried_files([results])) - self.files(state, points))
            raise

    def forget_refused(self) -> None:
        """Remove the files of the epoch that had too many dead letters."""
        if self.refused is not None:
            self.sweep(result_files(self.refused))
            self.refused = None

    def after(self, last: EpochResults, queries: QuerySet, token: str) -> tuple[EpochResults, int]:
        """The results of an epoch with what those that it removes leave behind, and the oldest epoch kept.

        Args:
            last: the results of the epoch that is committed.
            queries: those of the run.
            token: makes the name of the file that is written unique.
        """
        oldest = self._oldest_after(last)
        results = [*self.results, last]
        if oldest == results[0].epoch:
            known = self.results[-1].carried if self.results else {}
            carried = {name: part for name, part in known.items() if name in last.heartbeats}
            return replace(last, carried=carried), oldest
        schemas = {name: (plan.schema, queries.start_of(name)) for name, plan in queries.plans.items()}
        schemas |= {name: (one.form.schema, one.start) for name, one in queries.paused.items()}
        name = f"results/e{last.epoch}-carried-{token}"
        return carry_on(schemas, self._store, results, oldest, name), oldest

    def _oldest_after(self, last: EpochResults) -> int:
        """The oldest epoch whose results are kept once an epoch is committed."""
        results = [*self.results, last]
        oldest = results[0].epoch
        if self.retain is None:
            return oldest
        needed = max(oldest, min(retained_from(self.retain, results), self.oldest_needed()))
        # What is carried is written anew whenever results are removed, so that is not done in every epoch.
        return needed if needed - oldest >= max(1, self.retain // 4) else oldest

    def accept(self, last: EpochResults, oldest: int) -> set[str]:
        """Take in the results of a commit; the files of those that are no longer kept.

        Args:
            last: what was committed.
            oldest: the oldest epoch that is kept from now on.
        """
        results = [*self.results, last]
        self.results = [part for part in results if part.epoch >= oldest]
        gone = results[: len(results) - len(self.results)]
        return set[str]().union(*map(result_files, gone))

    def sweep(self, files: set[str]) -> None:
        """Remove files."""
        reach("sweep.begun")
        for file in files:
            self._store.delete(file)
        reach("sweep.done")

    def sweep_strays(self, state: Mapping[StateKey, Manifest], points: Mapping[str, StreamPoint]) -> None:
        """Remove the files of epochs that did not commit."""
        if isinstance(self._store, FolderStore):
            kept = self.files(state, points).union(*map(result_files, self.results))
            for folder in ("segments", "results"):
                self._store.drop_drafts(folder)
                for name in self._store.names(folder):
                    if name not in kept:
                        self._store.delete(name)
