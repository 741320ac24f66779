"""The ends of a span of an answer, which may be counted from its present."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.engine.inputs.times import Length, instant_of, span_of
from headrace.errors import UserError
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.results.spans import next_instant
from headrace.time import TimeDomain


@dataclass(frozen=True)
class Now:
    """The first instant after that of the answer now, or one before it.

    Attributes:
        back: how long before (instants).
    """

    back: int = 0


def beginning_of(end: int | Now, last: Length | None, since: object, domain: TimeDomain) -> object:
    """The beginning of a span; None where one instant is asked for.

    Args:
        end: the first instant after the span.
        last: the length of the span, as its user writes it.
        since: its first instant.
        domain: what instants count.

    Raises:
        UserError: both are given, or the length is none.
    """
    if last is None or since is not None:
        if last is not None:
            raise UserError("last and since both say where the span begins", hint="leave one of them out")
        return since
    length = span_of(last, domain, "last")
    return end - length if isinstance(end, int) else Now(length)


def ends_of(
    begin: object, end: object, domain: TimeDomain, newest: int
) -> Callable[[ResultReader], tuple[int, int] | None]:
    """The ends of a span, by what has been committed; None where one is the present of nothing said.

    Args:
        begin, end: instants as users write them, or `Now`.
        domain: what instants count.
        newest: as of `next_instant`; asked for before the answer is read, which may move its heartbeat on.

    Raises:
        UserError: one is not an instant.
    """
    first, last = (at if isinstance(at, Now) else instant_of(at, domain) for at in (begin, end))

    def known(reader: ResultReader) -> tuple[int, int] | None:
        if not (isinstance(first, Now) or isinstance(last, Now)):
            return first, last
        now = next_instant(reader, newest)
        if now is None:
            return None
        one, other = (now - at.back if isinstance(at, Now) else at for at in (first, last))
        return one, other

    return known
