"""The rows that no query could use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from headrace.lowering.query_id import first_name
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.store.segments import Store, read_part

NameOf = Callable[[str], str]
"""Says what the query of an identity is called."""


def letters_of(
    store: Store, epochs: Iterable[EpochResults], name_of: NameOf = first_name
) -> Iterator[pa.Table]:
    """The dead letters of some epochs, file by file; no table is empty. See `dead_letters`."""
    for part in epochs:
        for ref in part.dead_letters:
            with pa.ipc.open_stream(read_part(store, ref.part)) as reader:
                rows = reader.read_all()
            yield _with_queries(rows, part, name_of)


def dead_letters(store: Store, epochs: Sequence[EpochResults], name_of: NameOf = first_name) -> pa.Table:
    """The rows that no query could use.

    Args:
        store: where they are.
        epochs: of which they are, in order.
        name_of: says what queries are called.

    Returns:
        `epoch`, `stream`, `query` (which queries did without the row; NULL for all of its stream's),
        `reason`, `row` (as JSON or text) and `place`.
    """
    return pa.concat_tables([_LETTERS.empty_table(), *letters_of(store, epochs, name_of)])


def newest_dead_letters(
    store: Store, epochs: Sequence[EpochResults], name_of: NameOf, wanted: int
) -> pa.Table:
    """About the newest of the rows that no query could use, oldest first, as `dead_letters` gives them.

    Args:
        store: where they are.
        epochs: of which they may be, in order.
        name_of: says what queries are called.
        wanted: of so many rows, at least, files are read if there are as many.
    """
    first, found = len(epochs), 0
    while first and found < wanted:
        first -= 1
        found += sum(ref.rows for ref in epochs[first].dead_letters)
    letters = dead_letters(store, epochs[first:], name_of)
    return letters.slice(max(0, letters.num_rows - wanted))


_LETTERS = pa.schema(
    [("epoch", pa.int64()), *((name, pa.string()) for name in ("stream", "query", "reason", "row", "place"))]
)


def _with_queries(rows: pa.Table, part: EpochResults, name_of: NameOf) -> pa.Table:
    names = {node: ", ".join(map(name_of, queries)) for node, queries in part.users.items()}
    queries = pa.array([names.get(node) for node in rows["node"].to_pylist()], pa.string())
    columns = {name: rows[name] for name in _LETTERS.names if name != "query"}
    return pa.table(columns | {"query": queries}).select(_LETTERS.names)
