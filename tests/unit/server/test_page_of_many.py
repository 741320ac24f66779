"""The page of a server with many queries, and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from unit.server import test_page as pages
from unit.server.serving_for_tests import running
from unit.server.test_page import PARTS, PATIENT, ROOMS, STREAMS, carry_out, needs_browser, push
from waiting import wait_for

browser, opened = pages.browser, pages.opened
MANY = 40
WIDTH = 390
"""Of a phone, in pixels."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("many"), PATIENT) as url:
        carry_out(url, STREAMS)
        carry_out(url, ROOMS)
        carry_out(
            url,
            "; ".join(
                f"CREATE QUERY q_{one} AS SELECT room, MAX(celsius) AS celsius FROM reading [RANGE 10] "
                f"GROUP BY room HAVING MAX(celsius) > {one}"
                for one in range(MANY)
            ),
        )
        push(url, "reading", [{"ts": ts, "room": "a" * 60, "celsius": 20 + ts} for ts in range(4)])
        yield url


@needs_browser
@pytest.mark.slow("drives a browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_phone(opened: Callable[..., Page], server: str, scheme: str) -> None:
    page = opened(server, scheme)
    page.set_viewport_size({"width": WIDTH, "height": 844})
    for part in (*PARTS, "queries/q_7", "plan/query/q_7"):
        page.goto(f"{server}/#/{part}")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("#run")).to_contain_text("running")
        widths = page.evaluate(
            "[document.documentElement.scrollWidth, document.querySelector('nav').scrollWidth]"
        )
        assert max(widths) <= WIDTH, part
    # The list does not push the answer out of sight, and can be opened.
    page.goto(f"{server}/#/queries/q_7")
    expect(page.get_by_role("heading", level=1, name="q_7")).to_be_in_viewport()
    page.locator("summary", has_text="Queries").click()
    expect(page.get_by_role("searchbox", name="Find a query")).to_be_visible()


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_query_of_many_is_found(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/queries")
    table = page.get_by_role("region", name="All queries")
    expect(table.get_by_role("row")).to_have_count(MANY + 3)
    page.get_by_role("searchbox", name="Find a query").fill("q_17")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text("q_17")
    # What is looked for stays while the page goes on.
    push(server, "reading", [{"ts": 20, "room": "hall", "celsius": 20}])
    page.wait_for_timeout(100)
    expect(page.get_by_role("searchbox", name="Find a query")).to_have_value("q_17")
    expect(table.get_by_role("row")).to_have_count(2)


@needs_browser
@pytest.mark.slow("drives a browser")
def test_the_plan_of_many_queries_can_be_read(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/plan")
    pills, boxes = page.locator("a.pill"), page.locator("a.box")
    expect(pills).to_have_count(MANY + 2)
    total = boxes.count()
    # A shared operator names some of its queries, and how many more there are.
    expect(page.get_by_role("region", name="Operators")).to_contain_text(f"and {MANY - 1} more")
    find = page.get_by_role("searchbox", name="Find a query, a stream or an operator")
    find.fill("q_17")
    expect(pills).to_have_count(1)
    expect(boxes.filter(has_text="celsius > 17")).to_have_count(1)
    assert boxes.count() < 6
    find.fill("celsius > 31")
    expect(pills).to_have_count(1)
    expect(pills).to_contain_text("q_31")
    find.fill("source door")
    expect(pills).to_contain_text("open_doors")
    find.fill("nothing has this")
    expect(page.locator("main")).to_contain_text("Nothing fits")
    find.fill("")
    expect(boxes).to_have_count(total)
    # The whole picture in its box.
    page.get_by_role("button", name="Fit").click()
    canvas = "document.getElementById('canvas')"
    # The page forbids to evaluate texts within it, by which the browser would wait.
    wait_for(lambda: page.evaluate(f"{canvas}.scrollWidth <= {canvas}.clientWidth"))
    before = page.locator("svg.graph").bounding_box()
    page.get_by_role("button", name="Larger").click()
    assert before is not None
    wait_for(lambda: page.evaluate("document.querySelector('svg.graph').clientWidth") > before["width"])


@needs_browser
@pytest.mark.slow("drives a browser")
def test_what_uses_an_operator_is_highlighted(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/plan")
    page.get_by_role("searchbox").fill("q_3")
    page.locator("a.box").filter(has_text="celsius > 31").click()
    only = page.get_by_role("button", name="Only #")
    if only.get_attribute("aria-pressed") == "true":
        only.click()
    expect(page.locator("a.pill.chosen")).to_have_count(1)
    expect(page.locator("a.pill.chosen")).to_contain_text("q_31")
    expect(page.locator("a.box.used").filter(has_text="celsius > 31")).to_have_count(1)
    expect(page.locator("a.box.used").filter(has_text="celsius > 32")).to_have_count(0)
