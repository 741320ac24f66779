"""What a run needs of the machinery that carries out its epochs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import EpochWork, TaskReport
from headrace.schema import Schema


class Runner(Protocol):
    """Moves the chunks of an epoch between its stages; it has no semantics of its own."""

    @property
    def parallelism(self) -> int:
        """How many tasks can run at once."""
        ...

    @property
    def undivided(self) -> float:
        """Seconds of work that one task does sooner than several, since each of them costs the runner."""
        ...

    @property
    def few(self) -> int:
        """Fewer rows of each stream than that are left to one task in the first epoch of a run."""
        ...

    def buckets(self, *, bulk: bool) -> int:
        """Over how many buckets state is spread if nobody has said it.

        Args:
            bulk: whether there is input that comes in large epochs, such as that of files.
        """
        ...

    def new_store(self) -> Store:
        """A store that the runner's tasks can reach."""
        ...

    def run_epoch(self, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
        """Run one epoch; the reports of its tasks.

        Args:
            work: the epoch.
            frames: Spark data frames with the rows of streams that no source is read for.
        """
        ...

    def drop(self, queries: Collection[str]) -> None:
        """Do nothing more for some queries in the epoch that another thread is running, as far as it can be.

        They have failed with it then. It holds until `want` is called.

        Args:
            queries: their names.
        """
        ...

    def want(self, queries: Collection[str]) -> None:
        """Take back a `drop` of some queries."""
        ...

    def cancel(self) -> None:
        """End the epoch that another thread is running, as far as that can be done."""
        ...

    def close(self) -> None:
        """Let go of whatever was started."""
        ...


@runtime_checkable
class FormatReader(Protocol):
    """A runner on an engine that has formats of its own."""

    def read_stream(self, source: str, options: Mapping[str, str], schema: Schema | None) -> Any:
        """A streaming data frame of one of them.

        Raises:
            UserError: the engine does not know the format, or refuses the options.
        """
        ...

    def read_frame(self, source: str, options: Mapping[str, str]) -> Any:
        """A bounded data frame of one of them, which is read when its rows are asked for.

        Raises:
            UserError: the engine does not know the format, or refuses the options.
        """
        ...
