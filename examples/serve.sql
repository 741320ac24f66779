-- The auction site of NEXMark as it happens: bids are sent by a program, and these queries follow them.

CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP)
FROM push TIMESTAMP BY ts DISORDER 1 SECOND;

-- The mean price of the bids of the last ten seconds and how many there were, every second.
CREATE QUERY pace AS
SELECT AVG(price) AS price, COUNT(*) AS bids
FROM bid [RANGE 10 SECONDS SLIDE 1 SECOND];

-- The highest bid of the last minute by channel.
CREATE QUERY highest AS
SELECT channel, MAX(price) AS price, COUNT(*) AS bids
FROM bid [RANGE 1 MINUTE SLIDE 1 SECOND]
GROUP BY channel;

-- The five auctions with the most bids of the last minute.
CREATE QUERY hottest AS
SELECT auction, COUNT(*) AS bids
FROM bid [RANGE 1 MINUTE SLIDE 1 SECOND]
GROUP BY auction
ORDER BY bids DESC, auction
LIMIT 5;

-- The auctions with more than twenty bids in the last minute; it shares what it counts with the one before.
CREATE QUERY busy AS
SELECT auction, COUNT(*) AS bids
FROM bid [RANGE 1 MINUTE SLIDE 1 SECOND]
GROUP BY auction
HAVING COUNT(*) > 20;
