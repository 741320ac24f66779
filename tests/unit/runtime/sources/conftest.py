"""Helpers for the tests of sources: reading everything, in one piece or in many."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest

from headrace.runtime.sources import Rejected, SplitSource

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]


@pytest.fixture(scope="session")
def read_all() -> ReadAll:
    def read(
        source: SplitSource, cuts: Sequence[int] = (), columns: Sequence[str] | None = None
    ) -> tuple[pa.Table, list[Rejected]]:
        wanted = source.schema.names if columns is None else tuple(columns)
        places = [0, *sorted(min(cut, source.size) for cut in cuts), source.size]
        reads = [piece for start, end in pairwise(places) for piece in source.read(start, end, wanted)]
        indices = tuple(source.schema.names.index(name) for name in wanted)
        schema = source.schema.select(indices).arrow()
        for piece in reads:
            assert piece.rows.schema == schema
            piece.rows.validate(full=True)
        rejected = [row for piece in reads for row in piece.rejected]
        if not wanted:
            return pa.table({"rows": [sum(piece.rows.num_rows for piece in reads)]}), rejected
        return pa.Table.from_batches([piece.rows for piece in reads], schema).combine_chunks(), rejected

    return read
