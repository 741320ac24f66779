"""What one request may take, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLimits:
    """What one request may take.

    Attributes:
        request_bytes: of the body of a request, and of the rows in it once they are unpacked.
        result_rows: of an answer; one with more is refused.
        result_bytes: of an answer in memory.
        text_bytes: of statements, questions and what is to be completed.
        question_bytes: of what a question takes while it is answered.
        memory_bytes: of the bodies, questions and answers of all requests; one key has half of it
            at most.
        waiting: seconds that a request waits for memory, or for its turn, before it is refused.
        seconds: that statements and questions may take.
        patience: seconds that rows wait for room before they are refused.
        subscribers: how many clients may wait for changes at once.
        part_rows: how many rows of an epoch one event has at most.
        heartbeat: seconds after which a client that waits gets a comment, so that it knows that the server is
            there.
    """

    request_bytes: int = 64 * 2**20
    result_rows: int = 1_000_000
    result_bytes: int = 256 * 2**20
    text_bytes: int = 2**20
    question_bytes: int = 512 * 2**20
    memory_bytes: int = 2 * 2**30
    waiting: float = 10.0
    seconds: float = 30.0
    patience: float = 0.5
    subscribers: int = 10_000
    part_rows: int = 500
    heartbeat: float = 15.0
