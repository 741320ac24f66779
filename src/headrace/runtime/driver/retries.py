"""An epoch that fails: tried again, then without single streams, to find the one that makes it fail.

A batch that Spark hands over is computed only when an epoch reads it, so its faults (a user's function that
raises, a file that cannot be read, a worker that was killed) come to light inside the epoch's job. One
stream's fault must not end the run of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from headrace.errors import StoreError, UserError, named, shortened
from headrace.runtime.driver.run import Run
from headrace.runtime.intake.streams import Intake

ATTEMPTS: Final = 4
"""So often an epoch is tried before streams are left out of it."""
_TOLD_CHARACTERS: Final = 500
"""So much of what an exception says is told."""


def run_epoch(
    run: Run, intakes: Mapping[str, Intake], blamed: Collection[str], is_stopping: Callable[[], bool]
) -> dict[str, Exception]:
    """Run and commit an epoch, if need be without the streams that make it fail.

    An epoch that fails is tried again, unless the error says that it will fail again. Then it is tried
    without each of the streams whose rows come in frames, then without all of them.

    Args:
        run: what commits the epoch.
        intakes: what it takes of each stream.
        blamed: the streams that were left out of an epoch and have brought nothing good since; they are left
            out first.
        is_stopping: whether the run is to end; a failure is then not looked into.

    Returns:
        The streams that were left out, with the error.

    Raises:
        StoreError: the store cannot be read or written.
        Exception: the epoch fails without those streams as well.
    """
    error = _tried(run, intakes)
    if error is None:
        return {}
    for left_out in _ways(intakes, blamed, again=not isinstance(error, UserError)):
        rest = {name: intake for name, intake in intakes.items() if name not in left_out}
        if not is_stopping() and _tried(run, rest) is None:
            run.sweep_strays()
            return dict.fromkeys(left_out, error)
    raise error


def _ways(intakes: Mapping[str, Intake], blamed: Collection[str], *, again: bool) -> Iterator[list[str]]:
    """What to leave out of an epoch that has failed, one way after the other."""
    suspects = [name for name, intake in intakes.items() if intake.frame is not None]
    known = [name for name in suspects if name in blamed]
    if known:
        yield known
    if again:
        yield from [[]] * (ATTEMPTS - 1)
    yield from ([name] for name in suspects if [name] != known)
    if len(suspects) > 1 and suspects != known:
        yield suspects


def _tried(run: Run, intakes: Mapping[str, Intake]) -> Exception | None:
    """Run an epoch; what went wrong before it was committed, or None.

    Raises:
        StoreError: the store is at fault, whatever the epoch takes.
        Exception: it went wrong after the commit.
    """
    epochs = run.totals.epochs
    try:
        run.step(intakes)
    except StoreError:
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
