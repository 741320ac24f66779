"""A query that is replaced while it runs: another plan answers under its name, and its answer goes on.

Below an instant the old answer holds, from there on the new one; what is final is never taken back.

Where both plans can be clipped, the new one takes over once all that has entered either of them has ended.
Both run until then, so that neither answer lacks anything, and what is the same in both keeps its state
(`headrace.optimizer.migration`). Otherwise the new one starts anew, over the rows that arrive from then on,
for the instants from its streams' heartbeats on. What the old one has said of those is taken back. But where
all that is new looks at one instant at a time above operators that both have in common, these go on, and the
new one takes over at once (`headrace.runtime.driver.change.common_operators`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.runtime.driver.change.beginning.boundary import reach_of
from headrace.runtime.driver.change.content.answer import reader_of, said_from
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.driver.state import Holding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef


def taken_back(
    names: Iterable[str],
    before: Holding,
    after: QuerySet,
    results: Sequence[EpochResults],
    begins: Mapping[str, tuple[ResultRef, ...]],
    file: str,
) -> dict[str, tuple[ResultRef, ...]]:
    """What replaced queries begin with, after what takes back all that was said and is not final.

    Args:
        names: the queries that start anew.
        before: the queries that run.
        after: those from the change on.
        results: those of the epochs that are kept, in order.
        begins: what queries begin with.
        file: the name of the file to write, below the folder for results.
    """
    if not results:
        # Nothing was said before the first epoch.
        return {}
    writer = SegmentWriter(before.store, f"results/{file}")
    found: dict[str, tuple[ResultRef, ...]] = {}
    for name in names:
        held = held_from(reader_of(name, before, results).yielded(), results[-1].heartbeats[name])
        output, reach = dict(after.graph.outputs)[name], reach_of(after, name, before)
        refs = said_from(name, held.negated(), reach, before, results, writer, output)
        found[name] = (*refs, *begins.get(name, ()))
    writer.close()
    return found
