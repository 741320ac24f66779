"""Headrace among its peers: the queries over Parquet files, on Spark or in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from peer import Peer, serve
from spelled import Headrace
from spellings import SPELLED


class _Headrace:
    def __init__(self, headrace: Headrace) -> None:
        self._headrace = headrace

    def run(self, query: str, data: Path) -> float:
        return self._headrace.run(SPELLED[query], data / "bid")

    def save(self, query: str, data: Path, answer: Path) -> None:
        self._headrace.save(SPELLED[query], data / "bid", answer)


@contextmanager
def _start(*, inline: bool) -> Iterator[Peer]:
    with Headrace(inline=inline) as headrace:
        yield _Headrace(headrace)


if __name__ == "__main__":
    serve(partial(_start, inline=sys.argv.pop(1) == "inline"))
