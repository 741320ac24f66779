"""The page in a real browser, as people use it: with the mouse, with the keyboard alone, and as axe reads it.

Without Chromium these tests are skipped; `scripts/setup.sh` installs it where it may.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

import headrace as hr
from headrace.server import page as files_of_the_page
from headrace.server.address import Address
from headrace.server.keys import KeyFile, Role
from headrace.server.serving import listener
from unit.server.serving_for_tests import LIMITS, running

ROOT = Path(__file__).parents[3]
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("HEADRACE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")
PATIENT = replace(LIMITS, seconds=120)
"""For a busy machine: the first epochs compile what they need."""
PARTS = (
    *("queries", "queries/warmth", "queries/open_doors/why", "plan", "plan/operator/0", "streams/door"),
    *("relations", "relations/room", "sinks", "letters", "editor"),
)
LAYOUT = """async (nodes) => {
    const { at, ways } = (await import("/page/layers.js")).layered(nodes);
    return [Object.fromEntries(at), Object.fromEntries(ways)];
}"""
EXPLAINING = """async (text) => {
    const sql = await import("/page/sql.js");
    return sql.statements(text).map((one) => sql.explaining(text, one));
}"""
BARS = """async (rows) => {
    const { bars } = await import("/page/plots.js");
    const drawn = bars("q", rows, ["room"], "n");
    const read = (tag, name) => [...drawn.querySelectorAll(tag)].map((one) => Number(one.getAttribute(name)));
    const names = [...drawn.querySelectorAll("title")].map((one) => one.textContent);
    const [label, text] = [drawn.getAttribute("aria-label"), drawn.textContent];
    return { names, starts: read("rect", "x"), widths: read("rect", "width"), text, label };
}"""
BAND = """async ([columns, rows]) => {
    const { drawable, steps } = await import("/page/plots.js");
    const { measures, labels } = drawable(columns, rows);
    const drawn = steps("q", rows, labels, measures[0], null);
    const read = (name) => [...drawn.querySelectorAll(name)].map((one) => one.getAttribute("d"));
    const label = drawn.getAttribute("aria-label");
    return { measures, labels, label, bands: read(".band"), lines: read(".series") };
}"""
SQUARES = """async (rows) => {
    const { squares } = await import("/page/maps.js");
    const drawn = squares("q", rows, ["first", "second"], "r");
    const read = (name) => [...drawn.querySelectorAll("rect")].map((one) => one.getAttribute(name));
    const names = [...drawn.querySelectorAll("rect title")].map((one) => one.textContent);
    const [x, y, depths] = ["x", "y", "fill-opacity"].map((name) => read(name).map(Number));
    return { names, x, y, depths, classes: read("class"), label: drawn.getAttribute("aria-label") };
}"""
MULTIPLES = """async (rows) => {
    const { multiples } = await import("/page/maps.js");
    const drawn = multiples("q", rows, ["room"], "n", null);
    const read = (tag, name) => [...drawn.querySelectorAll(tag)].map((one) => one.getAttribute(name));
    return { texts: [...drawn.querySelectorAll("text")].map((one) => one.lastChild.textContent),
      paths: read("path", "d"), label: drawn.getAttribute("aria-label") };
}"""
STREAMS = """
CREATE STREAM reading (ts BIGINT, room STRING, celsius BIGINT) FROM push TIMESTAMP BY ts DISORDER 1;
CREATE STREAM door (ts BIGINT, room STRING) FROM push TIMESTAMP BY ts;
CREATE QUERY warmth AS SELECT room, MAX(celsius) AS celsius FROM reading [RANGE 10] GROUP BY room;
CREATE QUERY open_doors AS SELECT r.room FROM reading [RANGE 5] r, door [RANGE 5] d WHERE r.room = d.room;
"""
ROOMS = """
CREATE RELATION room (room STRING, floor BIGINT, op STRING, ts BIGINT) KEY (room) FROM push
CHANGES BY op TIMESTAMP BY ts
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the file: where it is open, the thread has an event loop, and other tests want their own."""
    assert CHROMIUM is not None
    with sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("page"), PATIENT) as url:
        carry_out(url, STREAMS)
        carry_out(url, ROOMS)
        push(url, "reading", [{"ts": ts, "room": "hall", "celsius": 20 + ts} for ts in range(4)])
        yield url


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page; at the end no request has left its host, and no script has failed."""
    contexts, sent, failed = [], list[str](), list[str]()

    def open_page(url: str, scheme: str = "light") -> Page:
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        contexts.append((context, urlsplit(url).netloc))
        page = context.new_page()
        page.on("request", lambda request: sent.append(urlsplit(request.url).netloc))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(url)
        return page

    expect.set_options(timeout=20_000)
    yield open_page
    hosts = {host for _, host in contexts}
    for context, _ in contexts:
        context.close()
    assert sent
    assert set(sent) <= hosts
    assert not failed


def carry_out(url: str, text: str) -> None:
    answer = httpx.post(f"{url}/statements", json={"text": text}, timeout=120)
    assert answer.status_code == 200, answer.text


def push(url: str, stream: str, rows: list[dict[str, object]]) -> None:
    lines = "\n".join(map(json.dumps, rows))
    sent = {"Content-Type": "application/x-ndjson"}
    answer = httpx.post(f"{url}/streams/{stream}/rows", content=lines, headers=sent, timeout=120)
    assert answer.status_code == 200, answer.text


def measure(url: str, room: str, celsius: dict[int, int]) -> None:
    """Readings of a room by their instants."""
    push(url, "reading", [{"ts": ts, "room": room, "celsius": found} for ts, found in celsius.items()])


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Statements").fill(text)


def test_every_file_of_the_page_is_in_the_wheel() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = found["tool"]["setuptools"]["package-data"]["headrace"]
    folder = Path(files_of_the_page.__file__).parent
    names = [file.name for file in folder.iterdir() if file.suffix not in (".py", ".pyc") and file.is_file()]
    assert "index.html" in names
    assert [name for name in names if not any(fnmatch(f"server/page/{name}", one) for one in patterns)] == []


def test_the_page_may_load_nothing_but_itself(tmp_path: Path) -> None:
    KeyFile(tmp_path / "keys.json").add("ann", Role.READ)
    with running(tmp_path) as url, httpx.Client(base_url=url) as client:
        answer = client.get("/")
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert {policy["script-src"], policy["style-src"], policy["connect-src"]} == {"'self'"}
        assert policy["frame-ancestors"] == "'none'"
        # Where keys are needed, the page comes without one, and nothing else does.
        assert client.get("/page/main.js").headers["content-type"].startswith("text/javascript")
        assert client.get("/page/..%2f..%2fserver%2fapp.py").status_code == 404
        assert client.get("/page/__init__.py").status_code == 404
        assert client.get("/status").status_code == 401
        tag = {"If-None-Match": answer.headers["etag"]}
        assert client.get("/", headers=tag).status_code == 304


@needs_browser
@pytest.mark.slow("drives a browser")
def test_a_query_from_its_first_error_until_it_is_dropped(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/editor")
    text = "CREATE QUERY cold AS SELECT room, MIN(celcius) AS celsius FROM reading [RANGE 10] GROUP BY room"
    write(page, f"-- the coldest\n{text}")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("line 2, column 39: there is no column celcius")
    expect(page.get_by_role("alert")).to_contain_text("did you mean celsius?")
    expect(page.locator("#paint mark")).to_have_text("celcius")
    write(page, page.get_by_role("textbox").input_value().replace("celcius", "celsius"))
    expect(page.locator("#paint mark")).to_have_count(0)
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".results pre")).to_contain_text("Aggregate BY room: MIN(celsius) AS celsius")
    page.get_by_role("button", name="Run").click()
    page.locator(".results").get_by_role("link", name="cold").click()
    # The answer changes while somebody looks.
    answer = page.get_by_role("region", name="Answer of cold")
    measure(server, "attic", {10: 7, 12: 9})
    expect(answer.get_by_role("row", name="attic 7")).to_be_visible()
    measure(server, "attic", {14: -3, 16: 2})
    expect(answer.get_by_role("row", name="attic -3")).to_be_visible()
    page.get_by_role("button", name="Over time").click()
    expect(page.get_by_role("img", name=re.compile("celsius of cold over time, between -"))).to_be_visible()
    _pause_replace_and_drop(page, server)


def _pause_replace_and_drop(page: Page, server: str) -> None:
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".heading .tag")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".heading .tag")).to_have_count(0)
    page.get_by_role("button", name="Replace…").click()
    text = page.get_by_role("textbox", name="Statements")
    expect(text).to_have_value(re.compile("CREATE OR REPLACE QUERY cold"))
    text.fill(text.input_value().replace("MIN(", "MAX("))
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".results pre")).to_contain_text("the new answer")
    # Nothing has happened yet.
    assert "MIN(" in httpx.get(f"{server}/explain", params={"query": "cold"}).json()["text"]
    page.get_by_role("button", name="Replace", exact=True).click()
    expect(page.locator(".results")).to_contain_text("cold is defined")
    assert "MAX(" in httpx.get(f"{server}/explain", params={"query": "cold"}).json()["text"]
    page.locator(".results").get_by_role("link", name="cold").click()
    page.get_by_role("button", name="Drop…").click()
    page.get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{server}/queries/cold").status_code == 200
    page.get_by_role("button", name="Drop…").click()
    page.get_by_role("button", name="Drop cold").click()
    expect(page.get_by_role("status").filter(has_text="cold is dropped")).to_be_visible()
    assert httpx.get(f"{server}/queries/cold").status_code == 404


@needs_browser
def test_why_leads_to_the_silent_stream(opened: Callable[..., Page], server: str) -> None:
    page = opened(f"{server}/#/queries/open_doors")
    page.get_by_role("link", name="Why").click()
    why = page.get_by_role("region", name="Why open_doors has no newer answer")
    expect(why).to_contain_text("open_doors waits for door")
    why.get_by_role("listitem").last.get_by_role("link", name="door", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("door")
    expect(page.get_by_role("region", name="The stream door")).to_contain_text("open_doors")
    # After a while without a heartbeat the plan shows the way in red; the page's clock says how long it was.
    page.clock.install()
    page.clock.fast_forward(20_000)
    expect(page.get_by_role("region", name="The stream door")).to_contain_text("silent")
    page.get_by_role("link", name="Plan").click()
    expect(page.locator("a.box.silent").filter(has_text="door")).to_contain_text("Source")
    expect(page.locator("a.pill.silent").filter(has_text="open_doors")).to_be_visible()


@needs_browser
@pytest.mark.parametrize("seed", range(3))
def test_the_layout_puts_what_is_read_to_the_left_and_nothing_over_another(
    opened: Callable[..., Page], server: str, seed: int
) -> None:
    some = random.Random(seed)
    nodes = [
        {"id": one, "inputs": sorted(some.sample(range(one), min(one, some.randrange(3))))}
        for one in range(40)
    ]
    places, ways = opened(server).evaluate(LAYOUT, nodes)
    for node in nodes:
        for read in node["inputs"]:  # type: ignore[attr-defined]
            # An edge goes on by one layer at a time, from what is read to what reads it.
            way = [places[str(read)], *ways[f"{read}>{node['id']}"], places[str(node["id"])]]
            assert [spot["layer"] for spot in way] == list(range(way[0]["layer"], way[-1]["layer"] + 1))
            assert len(way) > 1
    spots = [*places.values(), *(spot for way in ways.values() for spot in way)]
    for layer in range(40):
        rows = sorted({(spot["row"]) for spot in spots if spot["layer"] == layer})
        named = [spot["row"] for spot in places.values() if spot["layer"] == layer]
        assert len(set(named)) == len(named)
        assert all(below - above > 0.999 for above, below in pairwise(rows))


@needs_browser
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("CREATE QUERY q AS SELECT 1", ["EXPLAIN\n" + " " * 17 + " SELECT 1"]),
        ("-- a; b\nSELECT ';' FROM s ; SELECT 2", ["EXPLAIN\n       \nSELECT ';' FROM s",
                                                   "EXPLAIN\n       \n                    SELECT 2"]),
        ("CREATE OR REPLACE QUERY q AS SELECT 1;", ["EXPLAIN\nCREATE OR REPLACE QUERY q AS SELECT 1"]),
        ("DROP QUERY q; CREATE STREAM s (ts BIGINT) FROM push", [None, None]),
    ],
)  # fmt: skip
def test_what_explains_a_text_has_its_statements_at_their_places(
    opened: Callable[..., Page], server: str, text: str, sent: list[str | None]
) -> None:
    assert opened(server).evaluate(EXPLAINING, text) == sent


@needs_browser
def test_bars_are_as_long_as_their_values(opened: Callable[..., Page], server: str) -> None:
    rows = [{"room": f"r{one}", "n": n} for one, n in enumerate([10, -20, 40, None, 0, 30])]
    found = opened(server).evaluate(BARS, rows)
    assert found["names"] == ["r2", "r5", "r0", "r4", "r1"], "the longest first; NULL has none"
    starts, widths = found["starts"], found["widths"]
    zero = starts[0]
    assert starts[:3] == [zero] * 3
    assert [round(width / widths[2], 6) for width in widths[:3]] == [4, 3, 1]
    assert widths[3] == 1, "a value of 0 can be seen"
    assert (round(widths[4] / widths[2], 6), round(starts[4] + widths[4], 6)) == (2, round(zero, 6))
    assert found["label"] == "n of q by group: r2 40, r5 30, r0 10, r4 0, r1 -20"
    many = opened(server).evaluate(BARS, [{"room": f"r{one}", "n": one} for one in range(1, 20)])
    assert len(many["widths"]) == 12
    assert many["text"].endswith("and 7 more")


@needs_browser
def test_bounds_are_a_band_around_the_line(opened: Callable[..., Page], server: str) -> None:
    columns = [{"name": name, "type": "BIGINT"} for name in ("n", "n_low", "n_high")]
    rows = [
        {"n": 10, "n_low": None, "n_high": None, "valid_from": 0, "valid_to": 10},
        {"n": 12, "n_low": 8, "n_high": 20, "valid_from": 10, "valid_to": 20},
    ]
    found = opened(server).evaluate(BAND, [columns, rows])
    assert (found["measures"], found["labels"]) == (["n"], [])
    assert (len(found["bands"]), len(found["lines"])) == (1, 1)
    assert found["bands"][0].count("M") == 1, "where there are bounds"
    assert found["label"] == "n of q over time, between 0 and 20; now 12, from 8 to 20"


@needs_browser
def test_pairs_are_squares_of_colour(opened: Callable[..., Page], server: str) -> None:
    """The farther from 0 the darker, in another colour below it; a pair that is not there has none."""
    values = {("a", "b"): 0.5, ("a", "c"): -1.0, ("b", "c"): None, ("b", "d"): 0.25}
    rows = [{"first": one, "second": other, "r": r} for (one, other), r in values.items()]
    found = opened(server).evaluate(SQUARES, rows)
    assert found["names"] == ["a · b: 0.5", "a · c: -1", "b · d: 0.25"]
    assert (found["y"][0], found["x"][0] < found["x"][1] < found["x"][2]) == (found["y"][1], True)
    assert found["y"][2] > found["y"][0]
    assert found["classes"] == ["square", "square below", "square"]
    assert found["depths"] == [0.54, 1.0, 0.31]
    assert found["label"] == "r of q for 3 pairs of first and second, from -1 to 0.5"
    many = [{"first": f"a{one}", "second": "b", "r": 0.5} for one in range(40)]
    assert opened(server).evaluate(SQUARES, many)["label"].endswith("; 10 groups are not drawn")


@needs_browser
def test_each_group_has_a_small_picture_with_the_same_axes(opened: Callable[..., Page], server: str) -> None:
    rows = [
        {"room": room, "n": n, "valid_from": ts, "valid_to": ts + 10}
        for room, n in (("hall", 1), ("attic", 5))
        for ts in (0, 10)
    ]
    found = opened(server).evaluate(MULTIPLES, rows)
    assert found["texts"] == ["attic", "hall"]
    high, low = (float(path.split()[1].split("H")[0]) for path in found["paths"])
    assert high < low, "5 is above 1"
    assert found["label"] == "n of q over time, each of 2 groups by itself, between 1 and 6"


@needs_browser
def test_sinks_and_relations_are_shown_and_sinks_dropped(opened: Callable[..., Page], tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(STREAMS + ROOMS)
        for name in ("archive", "copy"):
            path = tmp_path / name
            db.execute(f"CREATE SINK {name} FOR warmth TO json OPTIONS (path '{path}')")
        db.start()
    with running(tmp_path, PATIENT) as url:
        measure(url, "hall", {1: 20, 4: 19})
        page = opened(f"{url}/#/sinks")
        row = page.get_by_role("row", name=re.compile("^archive warmth json"))
        expect(row).to_contain_text(str(tmp_path / "archive"))
        expect(row).to_contain_text("has everything")
        page.get_by_role("button", name="Drop archive…").click()
        page.get_by_role("button", name="Drop archive", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="the sink archive is dropped")).to_be_visible()
        expect(row).to_have_count(0)
        page.goto(f"{url}/#/relations/room")
        expect(page.get_by_role("region", name="Definition of room")).to_contain_text(
            "FROM push CHANGES BY op"
        )
        expect(page.get_by_role("row", name=re.compile("^room room until they are changed"))).to_be_visible()
        page.goto(f"{url}/#/queries/warmth")
        expect(page.locator(".facts")).to_contain_text("goes to copy")
        page.get_by_role("button", name="Drop…").click()
        expect(page.get_by_role("dialog")).to_contain_text("and so is its sink copy")
        page.get_by_role("button", name="Drop warmth").click()
        expect(page.get_by_role("status").filter(has_text="warmth is dropped")).to_be_visible()
        assert httpx.get(f"{url}/sinks").json() == {"sinks": []}


@needs_browser
def test_the_lanes_of_queries_that_are_behind_are_shown(opened: Callable[..., Page], tmp_path: Path) -> None:
    with running(tmp_path, PATIENT) as url:
        carry_out(url, STREAMS)
        carry_out(url, "CREATE QUERY lately AS SELECT DISTINCT celsius FROM reading [RANGE 100]")
        page = opened(f"{url}/#/queries")
        expect(page.get_by_role("row", name=re.compile("^lately"))).to_be_visible()
        expect(page.get_by_role("region", name="Lanes")).to_have_count(0)
        graph = "(DELAY (1 HOUR, 1), (2 HOURS, 0))"
        carry_out(url, f"CREATE QUERY report WEIGHT 0 QOS {graph} AS SELECT celsius FROM reading [RANGE 9]")
        measure(url, "hall", {1: 1, 2: 2, 3: 3})
        row = page.get_by_role("region", name="Lanes").get_by_role("row", name=re.compile("^report"))
        expect(row).to_have_text(re.compile(r"report ?\d+ ?0 ?0 % ?0 % ?3 rows ?[\d.]+ s ?0$"))
        queries = page.get_by_role("table", name="All queries")
        expect(queries.get_by_role("row", name=re.compile("^report"))).to_contain_text("behind: 3 rows, ")
        carry_out(url, "ALTER QUERY report SET (WEIGHT 3)")
        expect(row).to_have_text(re.compile(r"report ?\d+ ?3 ?\d+ % ?\d+ % ?0 rows ?1 ?report 1.00$"))
        expect(queries.get_by_role("row", name=re.compile("^report"))).not_to_contain_text("behind")
        assert not [
            one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")
        ]


@needs_browser
def test_the_limit_of_memory_and_the_windows_for_it_are_shown(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    with running(tmp_path, PATIENT) as url:
        carry_out(url, STREAMS)
        carry_out(
            url, "CREATE QUERY lately AS SELECT DISTINCT celsius FROM reading [RANGE MIN 100, MAX 1000]"
        )
        for begin in range(0, 3000, 300):
            measure(url, "hall", {ts: ts for ts in range(begin, begin + 300)})
        page = opened(f"{url}/#/queries")
        expect(page.get_by_role("row", name=re.compile("^lately"))).to_be_visible()
        expect(page.get_by_role("region", name="Memory")).to_have_count(0)
        carry_out(url, "SET memory_limit = '1 GB'")
        memory = page.get_by_role("region", name="Memory")
        expect(memory).to_contain_text("windows can be 100 % of the way")
        managed = httpx.get(f"{url}/status").json()["managed"]
        carry_out(url, f"SET memory_limit = {managed['expected'] + managed['working']}")
        row = memory.get_by_role("row", name=re.compile("^reading"))
        expect(row).to_contain_text("shrunk from 1000 to ")
        managed = httpx.get(f"{url}/status").json()["managed"]
        (window,) = managed["windows"]
        place = f"{round(100 * window['place'])} %"
        expect(row).to_have_text(re.compile(f"reading ?100 ?1,000 ?{window['size']:,} ?{place}"))
        expect(memory).to_contain_text(managed["text"])
        page.goto(f"{url}/#/queries/lately/why")
        expect(page.get_by_role("main")).to_contain_text(window["why"])
        assert not [
            one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")
        ]


@needs_browser
def test_the_plan_shows_what_queries_share(opened: Callable[..., Page], server: str) -> None:
    text = "CREATE QUERY hot AS SELECT room, MAX(celsius) AS celsius FROM reading [RANGE 10] GROUP BY room"
    carry_out(server, f"{text} HAVING MAX(celsius) > 21")
    page = opened(f"{server}/#/plan")
    shared = page.locator("a.box.shared")
    expect(shared.first).to_have_attribute("aria-label", re.compile("shared by warmth.*hot"))
    page.locator("a.pill").filter(has_text="warmth").click()
    expect(page.locator("a.box.held, a.box.silent").filter(has_text="Source")).to_contain_text("reading")
    page.locator("a.box").filter(has_text="Aggregate").first.click()
    expect(page.get_by_role("region", name=re.compile("Aggregate BY room"))).to_contain_text("Heartbeat")
    carry_out(server, "DROP QUERY hot")


@needs_browser
def test_what_rows_hold_is_shown_and_never_run(opened: Callable[..., Page], server: str) -> None:
    bad = "<img src=/nowhere onerror=alert(1)>"
    carry_out(server, "CREATE STREAM said (ts BIGINT, text STRING) FROM push TIMESTAMP BY ts")
    carry_out(server, "CREATE QUERY sayings AS SELECT text FROM said [RANGE 10]")
    push(server, "said", [{"ts": 5, "text": bad}, {"ts": 7, "text": "b"}])
    push(server, "said", [{"ts": 1, "text": f"late {bad}"}])
    page = opened(f"{server}/#/queries/sayings")
    expect(page.get_by_role("region", name="Answer of sayings").get_by_role("cell", name=bad)).to_be_visible()
    page.goto(f"{server}/#/letters/said")
    letters = page.get_by_role("region", name="Dead letters of said")
    expect(letters.get_by_role("cell", name=f"late {bad}").first).to_be_visible()
    assert page.locator("main img").count() == 0


@needs_browser
def test_the_page_goes_on_with_the_next_server(opened: Callable[..., Page], tmp_path: Path) -> None:
    with listener(Address(port=0)) as free:
        address = Address(port=free.getsockname()[1])

    def served() -> AbstractContextManager[str]:
        return running(tmp_path, PATIENT, address)

    with served() as url:
        carry_out(url, STREAMS)
        measure(url, "hall", {1: 20, 4: 19})
        page = opened(f"{url}/#/queries/warmth")
        answer = page.get_by_role("region", name="Answer of warmth")
        expect(answer.get_by_role("row", name="hall 20")).to_be_visible()
    expect(page.locator("#run")).to_contain_text("not connected")
    with served() as url:
        expect(page.locator("#run")).to_contain_text("running")
        measure(url, "hall", {6: 31, 9: 5})
        expect(answer.get_by_role("row", name="hall 31")).to_be_visible()


@needs_browser
def test_a_key_is_asked_for_and_kept_for_the_session(opened: Callable[..., Page], tmp_path: Path) -> None:
    secret = KeyFile(tmp_path / "keys.json").add("ann", Role.READ)
    with running(tmp_path) as url:
        page = opened(url)
        page.get_by_role("textbox", name="Key").fill("hr_wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("this key is not known")
        page.get_by_role("textbox", name="Key").fill(secret)
        page.keyboard.press("Enter")
        expect(page.locator("#run")).to_contain_text("at rest")
        assert secret not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
        assert secret in page.evaluate("JSON.stringify(sessionStorage)")
        page.get_by_role("button", name="Forget the key").click()
        expect(page.get_by_role("dialog")).to_contain_text("a key is needed")
        assert secret not in page.evaluate("JSON.stringify(sessionStorage)")


@needs_browser
def test_the_keyboard_is_enough(opened: Callable[..., Page], server: str) -> None:
    page = opened(server)
    expect(page.get_by_role("link", name="warmth").first).to_be_visible()
    keys = page.keyboard
    _tab_to(page, "Editor")
    keys.press("Enter")
    _tab_to(page, "Statements")
    keys.type("SELECT MAX(celsius) FROM read")
    option = page.get_by_role("option", name="reading stream")
    expect(option).to_have_attribute("aria-selected", "true")
    keys.press("Tab")
    expect(page.get_by_role("textbox", name="Statements")).to_have_value("SELECT MAX(celsius) FROM reading")
    keys.press("Control+Shift+Enter")
    expect(page.locator(".results pre")).to_contain_text("Aggregate: MAX(celsius)")
    # The text area is no trap.
    _tab_to(page, "Run")
    _tab_to(page, "warmth", "Queries")
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("warmth")
    _tab_to(page, "Why")
    keys.press("Enter")
    expect(page.get_by_role("region", name="Why warmth has no newer answer")).to_contain_text("reading")


def _tab_to(page: Page, name: str, via: str | None = None) -> None:
    """Press Tab until something of a name has the focus; by way of another link if it is on another part."""
    if via is not None:
        _tab_to(page, via)
        page.keyboard.press("Enter")
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(({ariaLabel, innerText}) => ariaLabel ?? innerText)(document.activeElement)"
        )
        if focused.split("\n")[0].strip() == name:
            return
    raise AssertionError(f"{name} is not reached")


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow("drives a browser")
def test_axe_finds_nothing_serious(opened: Callable[..., Page], server: str, scheme: str) -> None:
    page = opened(server, scheme)
    for part in PARTS:
        page.goto(f"{server}/#/{part}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("#run")).to_contain_text("running")
        if part == "editor":
            write(page, "SELECT celcius FROM reading")
            page.get_by_role("button", name="Run").click()
            expect(page.get_by_role("alert")).to_be_visible()
        found = Axe().run(page).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(part, one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == []
