"""Numbers per query that are kept per node."""

from __future__ import annotations

import pytest

from headrace.runtime.journal.by_query import ByQuery


def test_it_is_a_mapping_of_the_queries_that_are_not_left_out() -> None:
    nodes = {"a": 2, "b": 0, "c": 2}
    kept = ByQuery(nodes, (10, 11, 12), ["c", "never"])
    assert kept == {"a": 12, "b": 10}
    assert (len(kept), list(kept), "c" in kept, kept.get("c")) == (2, ["a", "b"], False, None)
    with pytest.raises(KeyError):
        kept["c"]
    with pytest.raises(KeyError):
        kept["never"]
    assert dict(ByQuery(nodes, (10, 11, 12))) == {"a": 12, "b": 10, "c": 12}
