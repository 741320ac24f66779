-- Four queries of Krämer's thesis over NEXMark, an auction site: a million events, made up by the built-in
-- generator at ten events per second, so they tell of 28 hours. Auctions last from 3 minutes to 2 hours.

CREATE STREAM bid     FROM nexmark OPTIONS (events=1000000, seed=1, rate=10) TIMESTAMP BY ts;
CREATE STREAM auction FROM nexmark OPTIONS (events=1000000, seed=1, rate=10) TIMESTAMP BY ts;
CREATE STREAM closed  FROM nexmark OPTIONS (events=1000000, seed=1, rate=10) TIMESTAMP BY ts;

-- Currency conversion: every bid in euros.
CREATE QUERY currency AS
SELECT auction, price * 0.908 AS euros, bidder
FROM bid;

-- Selection: the bids on five auctions.
CREATE QUERY selection AS
SELECT auction, price, bidder
FROM bid
WHERE auction = 1007 OR auction = 1020 OR auction = 2001 OR auction = 2019 OR auction = 1087;

-- Short auctions: those that closed within ten minutes of being opened.
CREATE QUERY short_auctions AS
SELECT A.id, A.item, A.seller
FROM auction A WINDOW(RANGE 10 MINUTES),
     closed [NOW] C
WHERE A.id = C.id;

-- Closing price: the highest bid, or the initial one where there was none, at the instant an auction closed.
CREATE STREAM current_price AS
SELECT P.id, P.price, A.seller
FROM (SELECT auction AS id, price FROM bid WINDOW(RANGE 2 HOURS)
      UNION ALL
      SELECT id, initial_bid AS price FROM auction WINDOW(RANGE 2 HOURS)) P,
     closed [NOW] C,
     auction A WINDOW(RANGE 2 HOURS)
WHERE P.id = C.id AND C.id = A.id;

CREATE QUERY closing_price AS
SELECT id, seller, MAX(price) AS price
FROM current_price
GROUP BY id, seller;
