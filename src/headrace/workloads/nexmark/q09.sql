-- Winning bids: the highest bid of each auction so far.
-- As printed.
SELECT id, item, description, initial_bid, reserve, ts, expires, seller, category, extra,
  auction, bidder, price, bid_ts, bid_extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY price DESC, bid_ts ASC) AS rownum
  FROM (
    SELECT A.*, B.auction, B.bidder, B.price, B.ts AS bid_ts, B.extra AS bid_extra
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires
  )
)
WHERE rownum <= 1;
