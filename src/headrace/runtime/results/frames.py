"""What a runner offers that can read results as data frames of its engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from headrace.runtime.results.reader import ResultReader


@runtime_checkable
class FrameMaker(Protocol):
    """A runner on an engine whose tasks can read committed results."""

    def frame(self, reader: ResultReader, view: str, table: Callable[[], pa.Table]) -> Any:
        """A view of what is committed, as a data frame of the engine.

        Args:
            reader: of the query.
            view: the view's name.
            table: its rows, for views that only this process can make.
        """
        ...
