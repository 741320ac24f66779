"""Who watches the status shares the looks at it."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.server.looks import Looks


def test_those_who_may_see_the_same_share_a_look() -> None:
    made = list[str]()

    async def watched() -> None:
        async def look(who: str) -> dict[str, Any]:
            made.append(who)
            await asyncio.sleep(0)
            return {"running": True, "epoch": len(made), "problems": {}}

        looks, some = Looks(60), frozenset(["q"])
        asked = [looks.newest(None, lambda: look("all")) for _ in range(100)]
        found = await asyncio.gather(*asked, looks.newest(some, lambda: look("some")))
        assert len({id(one) for one in found}) == 2
        assert made == ["all", "some"]
        again = Looks(0)
        for epoch in (3, 4):
            one = await again.newest(None, lambda: look("later"))
            assert (f'"epoch": {epoch}' in one.event.decode(), str(epoch) in one.version) == (True, True)

    asyncio.run(watched())
    assert made == ["all", "some", "later", "later"]
