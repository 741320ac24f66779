-- Auction statistics: how many bids an auction has had on a day so far, and their prices.
-- As printed, over all bids so far, with prices of the generator. AVG is a DOUBLE.
SELECT auction, DATE_FORMAT(ts, 'yyyy-MM-dd') AS day,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 100) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 100 AND price < 10000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 10000) AS rank3_bids,
  MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid
GROUP BY auction, DATE_FORMAT(ts, 'yyyy-MM-dd');
