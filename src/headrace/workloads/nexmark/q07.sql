-- Highest bid: the bids with the highest price of each 10 seconds.
-- The bids are in the same windows as their maximum. As printed, a bid at the very end of a window is compared, too.
SELECT B.auction, B.bidder, B.price, B.ts, B.extra
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)) B
JOIN (
  SELECT MAX(price) AS maxprice, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice AND B.window_end = B1.window_end;
