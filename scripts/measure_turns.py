"""The time that a push of one key takes alone, and while another key sends a thousand reading requests.

.venv/bin/python scripts/measure_turns.py [REQUESTS]
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx

from headrace.server.keys import KeyFile, Role

PORT = 7_919
URL = f"http://127.0.0.1:{PORT}"
TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r"""
AT_ONCE = 50
LINES = {"Content-Type": "application/x-ndjson"}


def main() -> None:
    """Measure and print."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        file = KeyFile(Path(folder) / "keys.json")
        keys = {role: file.add(role.value, role) for role in Role}
        words = ["serve", "--runner", "inline", "--storage", str(store), "--port", str(PORT)]
        words += ["--keys", str(file.path)]
        server = subprocess.Popen([sys.executable, "-m", "headrace", *words], stderr=subprocess.DEVNULL)
        try:
            measure(keys, requests)
        finally:
            server.terminate()
            server.wait(30)


def measure(keys: dict[Role, str], requests: int) -> None:
    """Push alone, then beside another key's requests.

    Args:
        keys: what the holders of the keys send.
        requests: how many the other key sends.
    """
    with httpx.Client(base_url=URL, timeout=120, headers=sent(keys[Role.ADMIN])) as admin:
        until_there(admin)
        admin.post("/statements", json={"text": TEXT}).raise_for_status()
    with httpx.Client(base_url=URL, timeout=120, headers={**sent(keys[Role.WRITE]), **LINES}) as writer:
        pushes = iter(range(1, 10**9))

        def push() -> float:
            number = next(pushes)
            began = time.perf_counter()
            content = f'{{"ts": {number}, "v": 1}}'
            writer.post("/streams/r/rows", content=content).raise_for_status()
            return time.perf_counter() - began

        warm = [push() for _ in range(10)]
        alone = [push() for _ in range(30)]
        readers = [
            threading.Thread(target=read, args=(keys[Role.READ], requests // AT_ONCE)) for _ in range(AT_ONCE)
        ]
        for one in readers:
            one.start()
        beside = []
        while any(one.is_alive() for one in readers):
            beside.append(push())
    print(f"{len(warm)} pushes before; {requests:,} reading requests of another key, {AT_ONCE} at once")
    for name, times in (("alone", alone), ("beside them", beside)):
        worst = 1_000 * max(times)
        print(
            f"a push {name}: median {1_000 * median(times):.1f} ms, longest {worst:.1f} ms, of {len(times)}"
        )


def read(key: str, number: int) -> None:
    """Ask for answers and explanations, whatever comes of it."""
    with httpx.Client(base_url=URL, timeout=120, headers=sent(key)) as client:
        for turn in range(number):
            if turn % 2:
                client.post("/ask", json={"sql": "SELECT COUNT(*) AS n FROM HISTORY OF q"})
            else:
                client.get("/queries/q/history")


def sent(key: str) -> dict[str, str]:
    """The header with a key."""
    return {"Authorization": f"Bearer {key}"}


def until_there(client: httpx.Client) -> None:
    """Wait for the server."""
    for _ in range(300):
        try:
            client.get("/healthz")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
