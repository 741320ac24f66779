-- Highest bid: the highest bids of each 10 seconds. A bid of the first instant after a window counts for it, too.
SELECT B.auction, B.price, B.bidder, B.ts, B.extra
FROM bid B
JOIN (
  SELECT MAX(price) AS maxprice, window_end AS ts
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.ts BETWEEN B1.ts - INTERVAL '10' SECOND AND B1.ts;
