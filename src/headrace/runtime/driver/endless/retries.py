"""An epoch that fails: tried again, then without single queries or streams, to find what makes it fail.

A function that crashes takes the worker it runs in with it, and the epoch with that. Which query called it
nobody can say any more, so it is looked for: some of the queries are run again, and again some of those.

A batch that Spark hands over is computed only when an epoch reads it, so its faults (a user's function that
raises, a file that cannot be read, a worker that was killed) come to light inside the epoch's job.

One query's or stream's fault must not end the run of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from headrace.errors import (
    AwayError,
    DeadLetterError,
    ExecutionError,
    HeadraceError,
    RunnerLostError,
    StoreError,
    UserError,
    WorkerLostError,
    named,
    shortened,
)
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.facts.progress import Progress
from headrace.runtime.driver.facts.reports import log_retry
from headrace.runtime.driver.query_record import Reason
from headrace.runtime.driver.remembering.remembering import Remembering
from headrace.runtime.intake.streams import Intake
from headrace.runtime.outside.patience import patience

ATTEMPTS: Final = 4
"""So often an epoch is tried before streams are left out of it."""
_MOST_BEHIND: Final = 500_000
"""So many rows a lane takes at once where nobody waits for others."""
_TOLD_CHARACTERS: Final = 500
"""How much of an exception's message is reported."""


def run_to_end(run: Run, progress: Callable[[Progress], None] | None = None) -> None:
    """Read all streams of a run to their end, epoch by epoch.

    Args:
        run: what commits the epochs; its streams are bounded.
        progress: called after every epoch.

    Raises:
        Exception: as `run_epoch` does.
    """
    remembering = Remembering()
    while intakes := run.next_share() or _left_behind(run):
        run_epoch(run, intakes)
        run.merge()
        if (change := remembering.after(run.reading)) is not None:
            run.change(change)
        run.end_exchanges()
        run.follow()
        if progress is not None:
            progress(run.progress())


def _left_behind(run: Run) -> dict[str, Intake]:
    """The intakes of queries that are behind once there is no more to come; none where nobody is."""
    waiting = next((one for one in run.backlogs() if not one.is_present), None)
    return {} if waiting is None else run.turn_of(waiting, _MOST_BEHIND)


def run_epoch(
    run: Run,
    intakes: Mapping[str, Intake],
    blamed: Collection[str] = (),
    is_stopping: Callable[[], bool] = lambda: False,
    notice: Callable[[Exception], None] = lambda error: None,
    waiting: Collection[str] | None = None,
) -> dict[str, Exception]:
    """Run and commit an epoch, if need be without the queries or streams that make it fail.

    An epoch that fails is tried again, unless the error says that it will fail again. If workers keep dying,
    it is tried without the queries that kill them, which end with it. Then it is tried without each of the
    streams whose rows come again, such as batches of Spark's, then without all of them. Where something
    outside is away, the streams that need it come later, or the epoch waits.

    Args:
        run: what commits the epoch.
        intakes: what it takes of each stream.
        blamed: the streams that were left out of an epoch and have brought nothing good since; they are left
            out first.
        is_stopping: whether the run is to end; a failure is then not looked into.
        notice: hears why the epoch is tried again.
        waiting: the streams that may come later if something outside is away that they need; None where the
            epoch waits for that itself, for a while.

    Returns:
        The streams that were left out, with the error.

    Raises:
        StoreError: the store cannot be read or written.
        RunnerLostError: there is nothing left to run epochs on.
        DeadLetterError: too many rows cannot take part.
        UserError: the epoch fails without those queries and streams as well.
    """
    error = _tried(run, intakes)
    if error is None:
        return {}
    away = isinstance(error, AwayError)
    ways = _later(intakes, waiting) if away else _ways(run, intakes, blamed, error)
    for left_out, ended in ways:
        rest = {name: intake for name, intake in intakes.items() if name not in left_out}
        if is_stopping():
            break
        log_retry(run.totals.epochs + 1, error)
        notice(error)
        if away and not rest:
            return dict.fromkeys(left_out, error)
        if _tried(run, rest, ended) is None:
            run.sweep_strays()
            return dict.fromkeys(left_out, error)
    if isinstance(error, HeadraceError):
        raise error
    raise ExecutionError(
        f"epoch {run.totals.epochs + 1} failed: {cause_of(error)}",
        hint="nothing of it counts; once the cause is mended, start again: a durable store goes on from its "
        "last commit",
    ) from error


def _later(
    intakes: Mapping[str, Intake], waiting: Collection[str] | None
) -> Iterator[tuple[Sequence[str], Mapping[str, Reason]]]:
    """What to leave out of an epoch that needs something that is away, one way after the other."""
    nothing: Mapping[str, Reason] = {}
    if waiting is None:
        for failures in range(1, ATTEMPTS):
            time.sleep(patience().after(failures))
            yield [], nothing
        return
    suspects = [name for name in intakes if name in waiting]
    yield from (([name], nothing) for name in suspects)
    if len(suspects) > 1:
        yield suspects, nothing


def _ways(
    run: Run, intakes: Mapping[str, Intake], blamed: Collection[str], error: Exception
) -> Iterator[tuple[Sequence[str], Mapping[str, Reason]]]:
    """What to leave out of an epoch that has failed, one way after the other: streams, and queries to end."""
    suspects = [name for name, intake in intakes.items() if intake.is_batch or intake.comes_again]
    known = [name for name in suspects if name in blamed]
    nothing: Mapping[str, Reason] = {}
    if known:
        yield known, nothing
    lost = isinstance(error, WorkerLostError)
    if lost or not isinstance(error, UserError):
        yield from [([], nothing)] * (ATTEMPTS - 1)
    if lost and (deadly := _deadly_queries(run, intakes)):
        yield [], deadly
    yield from (([name], nothing) for name in suspects if [name] != known)
    if len(suspects) > 1 and suspects != known:
        yield suspects, nothing


def _deadly_queries(run: Run, intakes: Mapping[str, Intake]) -> dict[str, Reason]:
    """The queries in which workers die each time they are run; none where reading alone kills them."""
    found: dict[str, Reason] = {}

    def died(queries: Sequence[str]) -> WorkerLostError | None:
        try:
            run.rehearse(intakes, queries)
        except WorkerLostError as error:
            return error
        return None

    def search(queries: Sequence[str]) -> None:
        error = died(queries)
        if error is None:
            return
        if len(queries) > 1:
            middle = len(queries) // 2
            search(queries[:middle])
            search(queries[middle:])
        elif error := died(queries):  # once more, as a worker may die of something else
            found[queries[0]] = error.message, error.hint

    if died(()) is None:
        search(tuple(run.reading.queries.live))
    return found


def _tried(
    run: Run, intakes: Mapping[str, Intake], ended: Mapping[str, Reason] = MappingProxyType({})
) -> Exception | None:
    """Run an epoch; what went wrong before it was committed, or None.

    Raises:
        StoreError: the store is at fault, whatever the epoch takes.
        RunnerLostError: so is what runs it.
        DeadLetterError: too many rows cannot take part, which another attempt does not change.
        Exception: it went wrong after the commit.
    """
    epochs = run.totals.epochs
    try:
        run.step(intakes, ended)
    except (StoreError, RunnerLostError, DeadLetterError):
        raise
    except Exception as error:
        if run.totals.epochs > epochs:
            raise
        return error
    return None


def cause_of(error: BaseException) -> str:
    """An error in one line; of an exception in a Python worker the line that names it."""
    if isinstance(error, UserError):
        return str(error)
    try:
        lines = [line.strip() for line in str(error).splitlines()]
    except Exception:  # an exception of a user's, which may do anything
        return named(error)
    raised = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback"))]
    return shortened(f"{type(error).__name__}: {raised[-1] if raised else ''}", _TOLD_CHARACTERS)
