"""Keys share threads and memory by turns: who wants much waits for itself."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from headrace.server.errors import RequestError
from headrace.server.limits import RequestLimits
from headrace.server.turns import HeldMemory, Shares
from unit.server.serving_for_tests import running


def test_a_key_that_has_its_part_waits_and_others_go_on() -> None:
    async def run() -> list[str]:
        shares, order = Shares(4, 2, "thread"), list[str]()

        async def take(key: str) -> None:
            await shares.take(key, 1, 5)
            order.append(key)

        await take("a")
        await take("a")
        late = [asyncio.create_task(take("a")) for _ in range(3)]
        await asyncio.sleep(0)
        await take("b")
        assert order == ["a", "a", "b"]
        shares.give_back("b", 1)
        await asyncio.sleep(0)
        assert order == ["a", "a", "b"], "what others do not use is not for one key alone"
        for _ in range(3):
            shares.give_back("a", 1)
            await asyncio.sleep(0)
        await asyncio.gather(*late)
        return order

    assert asyncio.run(run()) == ["a", "a", "b", "a", "a", "a"]


def test_keys_that_wait_take_turns() -> None:
    async def run() -> list[str]:
        shares, order = Shares(1, 1, "thread"), list[str]()

        async def take(key: str) -> None:
            await shares.take(key, 1, 5)
            order.append(key)
            await asyncio.sleep(0)
            shares.give_back(key, 1)

        await asyncio.gather(*(take(key) for key in "aaaabb"))
        return order

    assert "".join(asyncio.run(run())) == "aababa"


def test_who_waits_too_long_is_refused_and_takes_nothing() -> None:
    async def run() -> None:
        shares = Shares(10, 10, "memory")
        held = HeldMemory(shares, "a", 0.01)
        await held.have(10)
        with pytest.raises(RequestError) as refused:
            await HeldMemory(shares, "b", 0.01).have(1)
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
        waiting = asyncio.create_task(shares.take("b", 3, 5))
        gone = asyncio.create_task(shares.take("b", 10, 5))
        await asyncio.sleep(0)
        gone.cancel()
        await held.have(4)
        assert await waiting == 3
        held.release()
        shares.give_back("b", 3)
        assert await shares.take("c", 1_000, 0.01) == 10, (
            "nothing is lost, and more than there is counts as all"
        )

    asyncio.run(run())


def test_bodies_and_questions_that_have_no_memory_are_asked_to_come_again(tmp_path: Path) -> None:
    limits = RequestLimits(memory_bytes=100_000, question_bytes=20_000_000, waiting=0.05)
    with running(tmp_path, limits) as url, httpx.Client(base_url=url, timeout=60) as client:
        made = "CREATE STREAM r (ts BIGINT, v STRING) FROM push TIMESTAMP BY ts"
        query = "CREATE QUERY q AS SELECT v FROM r"
        assert client.post("/statements", json={"text": f"{made}; {query}"}).status_code == 200
        row = '{"ts": 1, "v": "' + "x" * 80_000 + '"}'
        lines = {"Content-Type": "application/x-ndjson"}
        assert client.post("/streams/r/rows", content=row, headers=lines).status_code == 200
        assert client.post("/ask", json={"sql": "SELECT 1"}).status_code == 200
        # A request that says how much it will send has that much, though it sends none of it. It is refused
        # itself where a question before it still has its memory, so each question comes after another one.
        for _ in range(100):
            with _begun(url, 50_000):
                answer = client.post("/ask", json={"sql": "SELECT 1"})
            if answer.status_code != 200:
                break
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1")


def _begun(url: str, size: int) -> socket.socket:
    """A connection with the head of a request of that size, and nothing of its body."""
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0))
    made.sendall(
        f"POST /statements HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {size}\r\n\r\n".encode()
    )
    return made


def test_texts_are_not_as_long_as_rows(tmp_path: Path) -> None:
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        for path, field in (("/statements", "text"), ("/ask", "sql"), ("/completions", "text")):
            answer = client.post(path, json={field: f"/*{'x' * 2**20}*/ SELECT 1", "at": 0})
            assert answer.status_code == 413, path
