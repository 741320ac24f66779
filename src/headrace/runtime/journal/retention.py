"""Which results have to be kept, and read, so that the changes of an epoch can be read in full.

An epoch releases elements that it yielded, and elements that earlier epochs yielded ahead of the heartbeat
(decision 0001). So the changes of an epoch are in its own results and in those of the epochs from its `since`
on, and these are kept for as long as the epoch itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from headrace.runtime.journal.by_query import moved_from
from headrace.runtime.journal.records import EpochResults


def waiting_since(query: str, results: Sequence[EpochResults]) -> int:
    """The oldest epoch that yielded an element which waits after the last one; the next epoch if none does.

    The answer only grows from epoch to epoch, so that all epochs of a run together are looked at once.

    Args:
        query: a query that has not failed.
        results: what is kept, in order and without gaps; not empty.
    """
    last = results[-1]
    reach = last.reach(query)
    begin = last.since.get(query, last.epoch) - results[0].epoch
    for index in range(max(begin, 0), len(results)):
        refs = results[index].results.get(query, ())
        if any(ref.latest >= reach and not ref.at_once for ref in refs):
            return results[index].epoch
    return last.epoch + 1


def since_of(query: str, results: Sequence[EpochResults], epoch: int) -> int:
    """The oldest epoch that has to be read for the changes from an epoch on.

    Args:
        query: the query.
        results: what is kept, in order and without gaps.
        epoch: one of them, or a later one.
    """
    if not results:
        return 1
    if epoch > results[-1].epoch:
        return waiting_since(query, results)
    return results[epoch - results[0].epoch].since.get(query, epoch)


def waits_of(queries: Set[str], results: Sequence[EpochResults], epoch: int) -> dict[str, int]:
    """The oldest epoch that has to be read for the changes of the next one, of those queries that need more.

    Only those are looked at that yielded something in the last epoch, or that something waited for.

    Args:
        queries: those that go on.
        results: what is kept, in order and without gaps.
        epoch: the next one.
    """
    if not results:
        return {}
    last = results[-1]
    asked = (last.since.keys() | last.results.keys()) & queries
    found = {}
    if len(results) > 1:
        # What waited waits on where nothing was yielded, and the answer has not come further.
        before = results[-2]
        horizons = {name for name, at in last.horizons.items() if before.horizons.get(name) != at}
        moved = horizons.union(moved_from(last.heartbeats, before.heartbeats), last.results)
        still = (asked & last.since.keys()) - moved
        found = {name: last.since[name] for name in still}
        asked -= still
    found |= {name: waiting_since(name, results) for name in asked}
    return {name: since for name, since in found.items() if since < epoch}


def whole_from(query: str, results: Sequence[EpochResults]) -> int:
    """The first epoch whose changes can be read in full; older ones are kept for what later ones release."""
    oldest = results[0].epoch if results else 1
    whole = (part.epoch for part in results if part.since.get(query, part.epoch) >= oldest)
    return next(whole, oldest)


def retained_from(retain: int, results: Sequence[EpochResults]) -> int:
    """The oldest epoch whose results are needed to read the changes of the last epochs in full.

    Args:
        retain: of how many epochs the changes are promised.
        results: what is kept, in order and without gaps, the epoch included that is being committed.
    """
    oldest, last = results[0].epoch, results[-1].epoch
    first = last - retain + 1
    if first <= oldest:
        return oldest
    since: Mapping[str, int] = results[first - oldest].since
    return max(oldest, min(since.values(), default=first))
