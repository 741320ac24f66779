"""What the logger `headrace` is told of a run; nothing is printed where nobody has set up logging."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from headrace.errors import PlanError, told
from headrace.heartbeats.bounded import Arrivals
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.journal.records import Commit, Totals
from headrace.runtime.tasks.fence import NodeFailure
from headrace.runtime.writing.texts import count

LOG: Final = logging.getLogger("headrace")


def log_epoch(commit: Commit, before: Totals, queries: QuerySet) -> None:
    """Log an epoch that was committed, and with a warning what it could not use.

    Args:
        commit: its record.
        before: the counters before it.
        queries: the queries before it.
    """
    after = commit.totals
    rows = _everything(after) - _everything(before)
    LOG.debug("epoch %d: %s in %.3f s", commit.epoch, count(rows, "row"), after.seconds - before.seconds)
    for name, seen in after.arrivals.items():
        known = before.arrivals.get(name, Arrivals())
        if seen.late > known.late:
            late, overdue = seen.late - known.late, seen.overdue - known.overdue
            if late > overdue:
                LOG.warning(
                    "epoch %d: %s of %s came too late", commit.epoch, count(late - overdue, "row"), name
                )
            if overdue:
                changes = count(overdue, "change")
                LOG.info("epoch %d: %s of %s came late, and count from now on", commit.epoch, changes, name)
    if letters := after.dead_letters - before.dead_letters:
        LOG.warning("epoch %d: %s", commit.epoch, count(letters, "dead letter"))
    for query, (message, _) in commit.failed.items():
        if query not in queries.failed:
            name = queries.name_of(query)
            LOG.warning("epoch %d: the query %s failed: %s", commit.epoch, name, message)


def log_traces(epoch: int, failures: Iterable[NodeFailure]) -> None:
    """Log where the exceptions were raised that nobody has foreseen, and that have ended queries."""
    for failure in failures:
        if failure.trace:
            LOG.error("epoch %d: %s\n%s", epoch, failure.message, failure.trace)


def log_exchange(name: str, exchange: PlanExchange) -> None:
    """Log that the exchange of a plan begins."""
    orders = "; ".join(map(" -> ".join, zip(exchange.before, exchange.after, strict=True)))
    why = "as asked" if exchange.asked else "by itself"
    LOG.info(
        "epoch %d: %s joins in another order, %s: %s, for %.1f times fewer rows",
        *(exchange.epoch, name, why, orders, exchange.gain),
    )


def log_refused(name: str, error: PlanError) -> None:
    """Log that a plan is kept though another is expected to be better."""
    LOG.info("%s goes on with its plan, though another would be better: %s", name, told(error))


def log_passed_over(what: str, error: BaseException) -> None:
    """Log that something was not done which no answer depends on."""
    LOG.warning("it was not possible %s: %s", what, told(error), exc_info=error)


def log_retry(epoch: int, error: BaseException) -> None:
    """Log that an epoch has failed, and is tried another way or again."""
    LOG.warning("epoch %d failed and is tried again: %s", epoch, told(error))


def _everything(totals: Totals) -> int:
    return sum(seen.everything for seen in totals.arrivals.values())
