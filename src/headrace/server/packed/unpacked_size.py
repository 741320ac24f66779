"""The bytes that a body unpacks to, counted until they are too many."""

from __future__ import annotations

from headrace.server.errors import RequestError, too_large


class UnpackedSize:
    """A count of the bytes that a body unpacks to.

    Args:
        limit: so many are taken.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0

    def add(self, size: int) -> None:
        """Count some more.

        Raises:
            RequestError: they are too many together, or a size is none.
        """
        if size < 0:
            raise ValueError("a size is below zero")
        self.bytes += size
        if self.bytes > self.limit:
            raise unpacks_to_too_much(self.limit)


def unpacks_to_too_much(limit: int) -> RequestError:
    """A body is refused for what it would take once it is unpacked."""
    return too_large(f"the rows have more than {limit:,} bytes", "send them in several requests")
