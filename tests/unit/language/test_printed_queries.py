"""The queries that the papers print, as they print them, bind; those of golden files also run.

Not here is what is no SQL in print either: Fjords' `AVG(s.speed, w)`, and a quotient of two queries.
"""

from __future__ import annotations

import pytest

from auctions import define
from headrace.errors import LanguageError
from headrace.language.catalog import Catalog
from headrace.language.printer import to_sql

STREAMS = """
CREATE STREAM OpenAuction(itemID INT, sellerID INT,
                           start_price REAL, timestamp TIMESTAMP)
  SOURCE parquet('port34100')
  ORDERED BY timestamp;
CREATE STREAM ClosedAuction(itemID INT, timestamp TIMESTAMP) SOURCE parquet('closed') ORDERED BY timestamp;
CREATE STREAM Bid(itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
  SOURCE parquet('bid') ORDERED BY timestamp;
CREATE STREAM ClosingPriceStream(itemID INT, sellerID INT, price REAL, timestamp TIMESTAMP)
  SOURCE parquet('closing') ORDERED BY timestamp;
CREATE STREAM Person(id INT, name STRING, timestamp TIMESTAMP) SOURCE parquet('person') ORDERED BY timestamp;
CREATE STREAM PTb(saddr STRING, daddr STRING, id INT, length INT, timestamp TIMESTAMP)
  SOURCE parquet('b') ORDERED BY timestamp;
CREATE STREAM PTc(saddr STRING, daddr STRING, id INT, length INT, timestamp TIMESTAMP)
  SOURCE parquet('c') ORDERED BY timestamp;
CREATE STREAM Requests(client_id INT, domain STRING, URL STRING, ts TIMESTAMP)
  SOURCE parquet('requests') ORDERED BY ts;
CREATE STREAM PosSpeedStr(vehicleId INT, speed INT, xPos INT, dir INT, hwy INT, ts TIMESTAMP)
  SOURCE parquet('cars') ORDERED BY ts;
"""
CATALOG, _ = define(STREAMS, Catalog())

THESIS = {
    "selection": """
SELECT Bid.*
FROM Bid
WHERE itemID = 1007 OR itemID = 1020
      OR itemID = 2001 OR itemID = 2019
      OR itemID = 1087;""",
    "short auctions": """
SELECT OpenAuction.*
FROM OpenAuction O WINDOW(RANGE 5 HOURS),
      ClosedAuction C
WHERE O.itemID = C.itemID;""",
    "closing price": """
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

CREATE STREAM ClosingPrices AS
    SELECT itemID, sellerID, MAX(P.price) AS price
    FROM CurrentPrice P,
    GROUP BY P.itemID, P.sellerID;
SELECT * FROM ClosingPrices""",
    "highest bid": """
SELECT itemID, bid_price
FROM   Bid WINDOW(RANGE 10 MINUTES),
WHERE  bid_price = (SELECT MAX(bid_price)
                    FROM BID WINDOW(RANGE 10 MINUTES));""",
    "hot item": """
SELECT itemID
FROM  (SELECT    B1.itemID AS itemID, COUNT(*) AS num
       FROM      Bid [RANGE 60 MINUTES] B1
       GROUP BY B1.itemID)
WHERE num >= ALL(SELECT COUNT(*)
                  FROM Bid [RANGE 60 MINUTES] B2
                  GROUP BY B2.itemID);""",
    "average selling price": """
SELECT sellerID, AVG(price)
FROM ClosingPriceStream WINDOW(PARTITION BY sellerID ROWS 10)
GROUP BY sellerID;""",
    "highest bid with slide": """
SELECT itemID, bid_price
  FROM Bid WINDOW(RANGE 10 MINUTES
                  SLIDE 10 MINUTES)
 WHERE bid_price = (SELECT MAX(bid_price)
                      FROM Bid WINDOW(RANGE 10 MINUTES
                                      SLIDE 10 MINUTES));""",
    "new users": """
CREATE STREAM NewPersonStream AS
    SELECT P.id, P.name
    FROM   Istream(Person) P;

    SELECT DISTINCT(P.id, P.name)
    FROM   SELECT P.id, P.name
           FROM   NewPersonStream WINDOW(RANGE 12 HOURS) P, OpenAuction O
           WHERE  P.id = O.sellerID;""",
}

CQL = {
    "requests of a day": """
Select Count(*)
From Requests S [Range 1 Day Preceding]
Where S.domain = 'stanford.edu'""",
    "requests of clients": """
Select Count(*)
From Requests S
[Partition By S.client_id
Rows 10 Preceding
Where S.domain = 'stanford.edu']
Where S.URL Like 'http://cs.stanford.edu/%'""",
    "the stream itself": "Select * From Requests",
    "an inserted selection": "SELECT Istream(vehicleId) FROM PosSpeedStr [Range Unbounded] WHERE speed > 65",
    "a current selection": "SELECT Rstream(vehicleId) FROM PosSpeedStr [Now] WHERE speed > 65",
    "everything inserted": "Select Istream(*) From PosSpeedStr [Rows Unbounded] Where speed > 65",
    "active vehicles": "Select Distinct vehicleId From PosSpeedStr [Range 30 Seconds]",
    "current positions": "Select Rstream(*) From PosSpeedStr [Partition By vehicleId Rows 1]",
    "packets on both links": """
Select  count (*)
From     PTc  As C,  PTb  As B
Where   C.saddr = B.saddr and C.daddr = B.daddr
        and C.id = B.id""",
}


@pytest.mark.parametrize("text", THESIS.values(), ids=THESIS)
def test_the_thesis(text: str):
    (plan,) = define(text, CATALOG)[1]
    assert define(to_sql(plan), CATALOG)[1] == [plan]


@pytest.mark.parametrize("text", CQL.values(), ids=CQL)
def test_cql(text: str):
    (plan,) = define(f"SET dialect = 'cql'; {text}", CATALOG)[1]
    assert define(to_sql(plan), CATALOG)[1] == [plan]


LOAD = """SET dialect = 'cql'; With Load As
      (Select  saddr, daddr, sum(length) as traffic
       From     PTb
       Group By saddr, daddr)"""


def test_the_top_pairs_of_a_backbone():
    """Babu and Widom's Q3, without its ORDER BY: its count of smaller pairs is a join, as the hint says."""
    with pytest.raises(LanguageError, match="tied to the outer query by equalities only") as raised:
        define(
            f"""{LOAD}
      Select  saddr, daddr, traffic
      From    Load As  L1
      Where   (Select  count(*)
               From    Load as  L2
               Where    L2.traffic <  L1.traffic) >
              (Select  0.95 * count(*) From Load)""",
            CATALOG,
        )
    assert raised.value.hint == "write inner = outer, or join in FROM and group by the outer columns"
    (plan,) = define(
        f"""{LOAD}
      Select L1.saddr, L1.daddr, L1.traffic
      From Load As L1, Load As L2
      Where L2.traffic < L1.traffic
      Group By L1.saddr, L1.daddr, L1.traffic
      Having count(*) > (Select 0.95 * count(*) From Load)""",
        CATALOG,
    )[1]
    assert plan.schema.names == ("saddr", "daddr", "traffic")
