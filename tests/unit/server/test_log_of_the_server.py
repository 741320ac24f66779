"""The log of a server, which nobody waits for."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from headrace.server.logs import WaitingLines
from waiting import wait_until

LINE = "x" * 1_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def logger_of(handler: logging.Handler) -> logging.Logger:
    logger = logging.Logger("of a test", logging.INFO)
    logger.addHandler(handler)
    return logger


def test_whoever_logs_does_not_wait_for_a_pipe_that_nobody_reads(pipe: tuple[int, int]) -> None:
    handler = WaitingLines(partial(os.write, pipe[1]), most=50)
    logger = logger_of(handler)

    def log() -> None:
        for number in range(1_000):
            logger.info("%s %s", number, LINE)

    logging_thread = threading.Thread(target=log, daemon=True)
    logging_thread.start()
    logging_thread.join(30)
    assert not logging_thread.is_alive()
    found: list[str] = []

    def read() -> None:
        with os.fdopen(os.dup(pipe[0])) as lines:
            for line in lines:
                found.append(json.loads(line)["message"])

    threading.Thread(target=read, daemon=True).start()
    # Each line is there, or counted as lost.
    wait_until(lambda: sum(map(counted, found)), 1_000)
    told = [one for one in found if not one.endswith(LINE)]
    assert told
    assert all(one.startswith("nobody has read the log for a while: ") for one in told)
    numbers = [int(one.split()[0]) for one in found if one.endswith(LINE)]
    assert numbers == sorted(numbers)
    logger.info("after %s", LINE)
    wait_until(lambda: found[-1][:5], "after")


def counted(message: str) -> int:
    """How many lines a message stands for."""
    return 1 if message.endswith(LINE) else int(message.split(": ")[1].split()[0].replace(",", ""))


def test_a_pipe_that_is_closed_ends_nothing() -> None:
    reader, writer = os.pipe()
    handler = WaitingLines(partial(os.write, writer))
    os.close(reader)
    logger_of(handler).info("lost")
    handler.flush()
    os.close(writer)


LOGS = """
import logging
from headrace.server.logs import log_as_json
log_as_json()
log = logging.getLogger("headrace")
"""


def test_what_was_logged_is_there_when_the_process_ends() -> None:
    code = f"{LOGS}\nfor number in range(500): log.warning('line %s', number)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert found == [f"line {number}" for number in range(500)]


def test_a_process_ends_though_nobody_reads_its_log() -> None:
    code = f"{LOGS}\nfor number in range(500): log.warning('line %s', 'x' * 1000)\nprint('done')"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        assert process.wait(120) == 0
