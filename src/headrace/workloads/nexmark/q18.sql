-- Last bid: the last one of each bidder on each auction.
-- As printed, over all bids so far.
SELECT auction, bidder, price, channel, url, ts, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS rank_number
  FROM bid
)
WHERE rank_number <= 1;
