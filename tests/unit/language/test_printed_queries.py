"""The queries that the papers print: the golden files run them, as they are printed.

`docs/papers.md` lists them all, with those that are no SQL in print and what they are written as.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headrace
from golden.case import CASES, load

PAGE = Path(__file__).parents[3] / "docs" / "papers.md"

THESIS = {
    "thesis_q2_selection": """
SELECT Bid.*
FROM Bid
WHERE itemID = 1007 OR itemID = 1020
      OR itemID = 2001 OR itemID = 2019
      OR itemID = 1087;""",
    "thesis_q3_short_auctions": """
SELECT OpenAuction.*
FROM OpenAuction O WINDOW(RANGE 5 HOURS),
      ClosedAuction C
WHERE O.itemID = C.itemID;""",
    "thesis_q5_closing_price": """
CREATE STREAM CurrentPrice AS
    SELECT P.itemID, P.price, O.sellerID AS sellerID
    FROM ((SELECT itemID, bid_price AS price
            FROM Bid WINDOW(RANGE 2 DAYS))
          UNION ALL
        (SELECT itemID, start_price AS price
            FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
              ClosedAuction C,
              OpenAuction O WINDOW(RANGE 2 DAYS)
    WHERE P.itemID = C.itemID AND C.itemID = O.itemID;

CREATE STREAM ClosingPriceStream AS
    SELECT itemID, sellerID, MAX(P.price) AS price
    FROM CurrentPrice P,
    GROUP BY P.itemID, P.sellerID;""",
    "thesis_q4_highest_bid": """
SELECT itemID, bid_price
FROM   Bid WINDOW(RANGE 10 MINUTES),
WHERE  bid_price = (SELECT MAX(bid_price)
                    FROM BID WINDOW(RANGE 10 MINUTES));""",
    "thesis_q6_hot_item": """
SELECT itemID
FROM  (SELECT    B1.itemID AS itemID, COUNT(*) AS num
       FROM      Bid [RANGE 60 MINUTES] B1
       GROUP BY B1.itemID)
WHERE num >= ALL(SELECT COUNT(*)
                  FROM Bid [RANGE 60 MINUTES] B2
                  GROUP BY B2.itemID);""",
    "average_selling_price": """
SELECT sellerID, AVG(price)
FROM ClosingPriceStream WINDOW(PARTITION BY sellerID ROWS 10)
GROUP BY sellerID;""",
    "thesis_highest_bid_slide": """
SELECT itemID, bid_price
  FROM Bid WINDOW(RANGE 10 MINUTES
                  SLIDE 10 MINUTES)
 WHERE bid_price = (SELECT MAX(bid_price)
                      FROM Bid WINDOW(RANGE 10 MINUTES
                                      SLIDE 10 MINUTES));""",
    "thesis_new_users": """
CREATE STREAM NewPersonStream AS
    SELECT P.id, P.name
    FROM   Istream(Person) P;

    SELECT DISTINCT(P.id, P.name)
    FROM   SELECT P.id, P.name
           FROM   NewPersonStream WINDOW(RANGE 12 HOURS) P, OpenAuction O
           WHERE  P.id = O.sellerID;""",
    "granularity": """
SELECT AVG(temperature)
  FROM sensor WINDOW(RANGE 1 HOUR) GRANULARITY(1 MINUTE);""",
}

CQL = {
    "cql_requests_of_a_day": """
Select Count(*)
From Requests S [Range 1 Day Preceding]
Where S.domain = 'stanford.edu'""",
    "cql_requests": """
Select Count(*)
From Requests S
[Partition By S.client_id
Rows 10 Preceding
Where S.domain = 'stanford.edu']
Where S.URL Like 'http://cs.stanford.edu/%'""",
    "cql_commerce": """
Select T.URL
From
(Select client_id, URL
From Requests S, Domains R
Where S.domain = R.domain
And R.type = 'commerce') T Sample(10)
Where T.client_id Between 1 And 1000""",
    "cql_the_stream_itself": "Select * From S",
    "cql_istream_unbounded": "SELECT Istream(vehicleId) FROM PosSpeedStr [Range Unbounded] WHERE speed > 65",
    "cql_rstream_now": "SELECT Rstream(vehicleId) FROM PosSpeedStr [Now] WHERE speed > 65",
    "packets_fraction": """
(Select  count (*)
      From     PTc  As C,  PTb  As B
      Where   C.saddr = B.saddr and C.daddr = B.daddr
              and C.id = B.id) /
      (Select count (*) From  PTb)""",
    "top_pairs": """
With Load As
      (Select  saddr, daddr, sum(length) as traffic
       From     PTb
       Group By saddr, daddr)
      Select  saddr, daddr, traffic
      From    Load As  L1
      Where   (Select  count(*)
               From    Load as  L2
               Where    L2.traffic <  L1.traffic) >
              (Select  0.95 × count(*) From Load)
      Order By traffic""",
}

PSOUP = {
    "psoup_selection": """
SELECT *
FROM Data_Stream D_s
WHERE (D_s.a < 5 ∧ D_s.b > 5)
BEGIN (NOW - 10)
END (NOW)""",
}

PRINTED = THESIS | CQL | PSOUP


@pytest.mark.parametrize("name", PRINTED)
def test_a_golden_file_runs_the_query_as_printed(name: str) -> None:
    case = load(CASES / f"{name}.txt")
    assert words(PRINTED[name]) in words(case.query)
    assert ("SET dialect = 'cql'" in case.query) == (name in CQL)


def words(text: str) -> str:
    return " ".join(text.rstrip("; \n").split())


def test_the_page_about_the_papers_names_what_there_is() -> None:
    """Each file that the page names is there, and each query above is on the page."""
    page = PAGE.read_text()
    root = PAGE.parents[1]
    named = re.findall(r"`(tests/\S+\.(?:txt|py))`", page)
    assert len(named) > len(PRINTED)
    assert [path for path in named if not (root / path).exists()] == []
    assert [name for name in PRINTED if f"tests/golden/cases/{name}.txt" not in named] == []


def test_the_currency_conversion_of_the_thesis() -> None:
    """Q1, as printed, with a function that the user writes."""
    bids = {"itemID": [1, 2, 2], "bid_price": [8.0, None, 3.0], "bidderID": [7, 8, 9], "ts": [1, 2, 4]}
    with headrace.connect(runner="inline") as db:
        db.function(
            "DolToEuro", lambda dollars: pc.divide(dollars, 2), arguments=["DOUBLE"], returns="DOUBLE"
        )
        db.stream("Bid", pa.table(bids), timestamp="ts")
        answer = db.query("SELECT itemID, DolToEuro(bid_price), bidderID\nFROM Bid;")
        db.run()
        found = [tuple(row.values()) for row in answer.history().to_pylist()]
    assert found == [(1, 4.0, 7, 1, 2), (2, None, 8, 2, 3), (2, 1.5, 9, 4, 5)]


def test_the_load_of_a_backbone() -> None:
    """Babu and Widom's Q1, as printed but for the threshold T, with its two self-explanatory functions."""
    seconds = pa.array([3, 50, 61, 70, 119, 120])
    instants = pc.multiply(seconds, 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    with headrace.connect(runner="inline") as db:
        db.function("notifyoperator", lambda load: load, arguments=["BIGINT"], returns="BIGINT")
        db.function("getminute", pc.minute, arguments=["TIMESTAMP"], returns="BIGINT")
        packets = pa.table({"length": [200, 150, 300, 1, 20, 5], "timestamp": instants})
        db.stream("PTb", packets, timestamp="timestamp")
        db.execute("SET dialect = 'cql'")
        answer = db.query("""
      Select    notifyoperator(sum(length))
      From      PTb
      Group By  getminute(timestamp)
      Having    sum(length) > 300""")
        db.run()
        rows = answer.history().to_pylist()
    assert [(load, start.timestamp()) for load, start, _ in (row.values() for row in rows)] == [
        (350, 50),
        (301, 70),
        (321, 119),
    ]
    assert [end and end.timestamp() for _, _, end in (row.values() for row in rows)] == [None, 119, None]
