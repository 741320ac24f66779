"""What comes of an endless run, waited for by a thread or by a task of asyncio."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from headrace.later import later

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio")

T = TypeVar("T")


class Subscription(Generic[T], Iterator[T], AsyncIterator[T]):
    """Items as they come, for one reader: with `for` in a thread, with `async for` in a task.

    A task that is cancelled while it waits closes the subscription. Each wait of a task takes a thread of
    its own, so that others of asyncio's are not held up.

    Args:
        items: the items; the next one is waited for.
        stop: lets whoever waits for `items` go on, which then end.
    """

    def __init__(self, items: Iterator[T], stop: Callable[[], None]) -> None:
        self._items = items
        self._stop = stop
        self._closed = False

    def close(self) -> None:
        """End it; who waits for the next item, in whatever thread, gets none."""
        self._closed = True
        self._stop()

    def __enter__(self) -> Subscription[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Subscription[T]:
        return self

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        item = next(self._items)
        if self._closed:
            raise StopIteration
        return item

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> T:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[list[T]] = loop.create_future()

        def settle(items: list[T], error: BaseException | None) -> None:
            if arrived.done():  # cancelled meanwhile
                return
            if error is not None:
                arrived.set_exception(error)
            else:
                arrived.set_result(items)

        def wait() -> None:
            items, error = [], None
            try:
                items = [*islice(self, 1)]
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, items, error)

        threading.Thread(target=wait, name="headrace subscription", daemon=True).start()
        try:
            items = await arrived
        except asyncio.CancelledError:
            self.close()
            raise
        if not items:
            raise StopAsyncIteration
        return items[0]
