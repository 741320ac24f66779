"""The editor in a real browser: rows of a SELECT, names beside it, tabs and what was carried out before."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from unit.server import test_page as pages
from unit.server.test_page import carry_out, needs_browser, push, write

browser, opened, server = pages.browser, pages.opened, pages.server
COUNTS = "SELECT room, COUNT(*) AS n FROM kept GROUP BY room"


def queries(url: str) -> set[str]:
    """The names of all queries."""
    return {one["name"] for one in httpx.get(f"{url}/queries").json()["queries"]}


def wait_until_dropped(page: Page, url: str) -> None:
    """Wait until the server has no query of an editor any more."""
    deadline = time.monotonic() + 20
    while any(name.startswith("editor_") for name in queries(url)):
        assert time.monotonic() < deadline, queries(url)
        page.wait_for_timeout(50)


def shown(page: Page, url: str, text: str) -> None:
    """Run a text in the editor."""
    page.goto(f"{url}/#/editor")
    write(page, text)
    page.get_by_role("textbox", name="Statements").press("Control+Enter")


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_select_shows_its_rows_and_defines_nothing(opened: Callable[..., Page], server: str) -> None:
    before = queries(server)
    carry_out(server, "CREATE STREAM kept (ts BIGINT, room STRING) FROM push TIMESTAMP BY ts RETAIN ALL")
    carry_out(server, "CREATE QUERY reads AS SELECT room FROM kept")
    push(server, "kept", [{"ts": ts, "room": "hall"} for ts in range(4)])
    page = opened(server)
    shown(page, server, f"SET dialect = 'sql'; {COUNTS}")
    answer = page.get_by_role("region", name="The answer")
    expect(answer.get_by_role("row", name="hall 3")).to_be_visible()
    expect(page.locator("main")).to_contain_text("over the rows that its streams keep")
    push(server, "kept", [{"ts": ts, "room": "attic"} for ts in (4, 5, 6)])
    expect(answer.get_by_role("row", name="attic 2")).to_be_visible()
    # It is not among the queries, and gone when nobody looks.
    assert len(queries(server)) == len(before) + 2
    page.get_by_role("link", name="Queries").click()
    expect(page.get_by_role("region", name="All queries").get_by_role("row")).to_have_count(len(before) + 2)
    wait_until_dropped(page, server)
    shown(page, server, "SELECT room FROM reading")
    expect(page.locator("main")).to_contain_text("for older ones are not kept")
    page.reload()
    wait_until_dropped(page, server)
    carry_out(server, "DROP QUERY reads; DROP STREAM kept")


@needs_browser
@pytest.mark.slow("drives a browser")
def test_what_is_wrong_with_a_select_is_shown_at_its_place(opened: Callable[..., Page], server: str) -> None:
    before = queries(server)
    page = opened(server)
    shown(page, server, "-- warm rooms\nSHOW STREAMS;\n  SELECT celcius FROM reading")
    expect(page.get_by_role("alert")).to_contain_text("line 3, column 10: there is no column celcius")
    expect(page.locator("#paint mark")).to_have_text("celcius")
    assert queries(server) == before


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_select_without_a_stream_is_asked_once(opened: Callable[..., Page], server: str) -> None:
    page = opened(server)
    shown(page, server, "SELECT 42 AS answer")
    expect(page.get_by_role("region", name="The answer").get_by_role("row", name="42")).to_be_visible()
    shown(page, server, "SELECT COUNT(*) AS n FROM HISTORY OF warmth")
    expect(page.get_by_role("region", name="The answer").get_by_role("row").last).to_have_text(
        re.compile(r"\d+")
    )


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_select_becomes_a_definition(opened: Callable[..., Page], server: str) -> None:
    page = opened(server)
    shown(page, server, "SELECT room FROM reading")
    page.get_by_role("button", name="Define as a query…").click()
    page.get_by_role("textbox", name="Name").fill("rooms")
    page.keyboard.press("Enter")
    text = page.get_by_role("textbox", name="Statements")
    expect(text).to_have_value("CREATE QUERY rooms AS\nSELECT room FROM reading")
    assert "rooms" not in queries(server)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".results")).to_contain_text("rooms is defined")
    carry_out(server, "DROP QUERY rooms")


@needs_browser
@pytest.mark.slow("drives a browser")
def test_names_beside_the_editor_are_inserted(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/editor")
    beside = page.get_by_role("complementary", name="Names and earlier statements")
    write(page, "SELECT ")
    beside.locator("summary[aria-label='Columns of reading']").click()
    beside.get_by_role("button", name="celsius").first.click()
    page.keyboard.type(" FROM ")
    page.keyboard.press("Escape")
    beside.get_by_role("button", name="reading", exact=True).click()
    expect(page.get_by_role("textbox", name="Statements")).to_have_value("SELECT celsius FROM reading")
    expect(beside).to_contain_text("BIGINT")


@needs_browser
@pytest.mark.slow("drives a browser")
def test_texts_and_what_was_carried_out_are_kept_between_visits(
    opened: Callable[..., Page], server: str
) -> None:
    page = opened(f"{server}/#/editor")
    write(page, "SHOW STREAMS")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".results pre")).to_contain_text("reading")
    page.get_by_role("button", name="A new text").click()
    write(page, "SHOW QUERIES")
    # Another tab of the browser, later.
    later = page.context.new_page()
    later.goto(f"{server}/#/editor")
    expect(later.get_by_role("textbox", name="Statements")).to_have_value("SHOW QUERIES")
    later.get_by_role("button", name="SHOW STREAMS", exact=True).click()
    expect(later.get_by_role("textbox", name="Statements")).to_have_value("SHOW STREAMS")
    later.get_by_role("button", name="Close SHOW STREAMS").click()
    expect(later.get_by_role("textbox", name="Statements")).to_have_value("SHOW QUERIES")
    later.locator("summary", has_text="Carried out before").click()
    later.locator("aside").get_by_role("button", name="SHOW STREAMS").click()
    expect(later.get_by_role("textbox", name="Statements")).to_have_value("SHOW STREAMS")
    later.get_by_role("button", name="Forget them").click()
    expect(later.locator("summary", has_text="Carried out before")).to_have_count(0)


@needs_browser
@pytest.mark.slow("drives a browser")
def test_the_words_that_are_offered_go_away_when_it_runs(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/editor")
    page.get_by_role("textbox", name="Statements").press_sequentially("SHOW STREAM")
    expect(page.get_by_role("option", name="STREAMS word")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("listbox")).to_have_count(0)
