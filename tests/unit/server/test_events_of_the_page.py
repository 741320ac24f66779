"""The page of queries whose rows are events: the newest of them as they come, and how many there were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from headrace.server import hour
from unit.server import test_page as pages
from unit.server.serving_for_tests import running
from unit.server.test_page import PATIENT, carry_out, needs_browser, push

browser, opened = pages.browser, pages.opened
TEXT = """
CREATE STREAM reading (ts TIMESTAMP, room STRING, celsius BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY hot AS SELECT room, celsius FROM reading WHERE celsius > 30;
CREATE QUERY hourly AS SELECT COUNT(*) AS n FROM reading [RANGE 1 HOUR SLIDE 1 HOUR];
"""
GROUPED = """async ([rows, length]) => {
    const { barsOf } = await import("/page/rates.js");
    return barsOf(rows.map(([at, room, times]) => ({ row: { room }, at, times })), "room", length);
}"""
INSTANTS = """async (given) => {
    const { instant } = await import("/page/format.js");
    return given.map(instant);
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hour, "SECONDS", 0.2)
        with running(tmp_path_factory.mktemp("events"), PATIENT) as url:
            carry_out(url, TEXT)
            yield url


def measure(url: str, minutes: list[int], room: str = "hall") -> None:
    push(
        url,
        "reading",
        [
            {"ts": f"2024-05-01T{9 + at // 60:02}:{at % 60:02}:00Z", "room": room, "celsius": 31 + at}
            for at in minutes
        ],
    )


@needs_browser
@pytest.mark.slow("drives a browser")
def test_the_newest_events_are_shown_as_they_come(opened: Callable[..., Page], server: str) -> None:
    measure(server, [0, 1, 2, 3])
    page = opened(f"{server}/#/queries/hot")
    rows = page.get_by_role("region", name="Newest rows of hot").locator("tbody tr")
    # The last instant is not final yet.
    expect(rows).to_have_count(3)
    expect(rows.first).to_have_text("2024-05-01 09:02:00hall33")
    expect(page.get_by_role("heading", name="Answer")).to_have_count(0)
    measure(server, [4, 5], "attic")
    expect(rows).to_have_count(5)
    expect(rows.first).to_have_text("2024-05-01 09:04:00attic35")
    picture = page.locator("svg.plot")
    expect(picture).to_have_attribute("aria-label", "Rows of hot per 5 s: 5 rows, at most 1")
    page.get_by_label("by").select_option("room")
    expect(picture).to_have_attribute("aria-label", "Rows of hot per 5 s: 5 rows, at most 1; by hall, attic")


@needs_browser
@pytest.mark.slow("drives a browser")
def test_the_rarest_groups_of_a_picture_are_one(opened: Callable[..., Page], server: str) -> None:
    page = opened(server)
    many = [[at, f"room {at % 9}", 1 + (at % 9 == 4)] for at in range(18)]
    found = page.evaluate(GROUPED, [many, 10])
    assert found["groups"] == ["room 4", "room 0", "room 1", "room 2", "room 3", "others"]
    assert found["bars"] == [[0, [2, 2, 1, 1, 1, 4]], [10, [2, 0, 1, 1, 1, 4]]]
    few = page.evaluate(GROUPED, [[[0, "a", 1], [25, "b", 2]], 10])
    assert few == {"groups": ["b", "a"], "bars": [[0, [0, 1]], [20, [2, 0]]]}


@needs_browser
@pytest.mark.slow("drives a browser")
def test_the_last_instant_of_a_window_is_named_by_its_end(opened: Callable[..., Page], server: str) -> None:
    measure(server, [10, 70, 80])
    page = opened(f"{server}/#/queries/hourly")
    expect(page.locator(".facts")).to_contain_text("final below just before 2024-05-01 11:00:00")
    given = [
        "2024-05-01T09:59:59.999999Z",
        "2024-05-01T09:59:59.999998Z",
        "2024-12-31 23:59:59.999999",
        999999,
        "end",
    ]
    assert page.evaluate(INSTANTS, given) == [
        *("just before 2024-05-01 10:00:00", "2024-05-01 09:59:59.999", "just before 2025-01-01 00:00:00"),
        *("999999", "end"),
    ]


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_stream_has_its_statement_and_the_rows_that_are_retained(
    opened: Callable[..., Page], server: str
) -> None:
    page = opened(f"{server}/#/streams/reading")
    expect(page.locator("main")).to_contain_text("the rows of reading are not kept")
    carry_out(server, "ALTER STREAM reading RETAIN ALL")
    measure(server, [90, 91], "cellar")
    rows = page.get_by_role("region", name="Newest rows of reading").locator("tbody tr")
    expect(rows.first).to_have_text("2024-05-01T10:31:00Zcellar122")
    page.get_by_text("Definition").click()
    expect(page.locator("details pre")).to_contain_text("CREATE STREAM reading")
    # Those that an hour's numbers have are seen there and on the first page.
    expect(page.get_by_role("img", name=re.compile("Rows in over the last"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Out by hot over the last"))).to_be_visible()
    page.goto(f"{server}/#/queries")
    expect(page.get_by_role("img", name=re.compile("Rows over the last .*: now"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Memory over the last .*: now .* [MG]B"))).to_be_visible()


@needs_browser
@pytest.mark.slow("drives a browser")
def test_what_has_not_been_read_yet_is_not_shown_as_empty(opened: Callable[..., Page], server: str) -> None:
    page = opened(server)
    held: list[Route] = []
    page.route("**/recent*", lambda route: held.append(route))
    page.goto(f"{server}/#/queries/hourly")
    main = page.locator("main")
    expect(main).to_contain_text("The answer is being read.")
    expect(main).not_to_contain_text("0 rows")
    expect(main).not_to_contain_text("nothing to draw")
    for one in held:
        one.continue_()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    expect(main).not_to_contain_text("The answer is being read.")
