"""Time in which kernels are compiled does not count for whoever waits for an epoch."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future

import pytest

from headrace.limits import untimed, untimed_seconds
from headrace.server.errors import RequestError
from headrace.server.routes.rows import _committed


def answered(done: Future[bool], seconds: float) -> bool:
    return asyncio.run(_committed(done, seconds))


def test_an_epoch_that_takes_longer_is_said() -> None:
    with pytest.raises(RequestError, match="takes longer than"):
        answered(Future(), 0.01)


def test_compiling_does_not_count() -> None:
    done: Future[bool] = Future()
    begun = threading.Event()

    def work() -> None:
        with untimed():
            begun.set()
            time.sleep(0.3)
        done.set_result(True)

    thread = threading.Thread(target=work)
    before = untimed_seconds()
    thread.start()
    assert begun.wait(10)
    assert answered(done, 0.02)
    thread.join()
    assert untimed_seconds() > before
