-- Calculation: bids of some prices, with the time of day and how often c is in their last column.
-- As printed, with prices of the generator, and the letters counted in SQL in place of a function in Java.
SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN HOUR(ts) >= 8 AND HOUR(ts) <= 18 THEN 'dayTime'
    WHEN HOUR(ts) <= 6 OR HOUR(ts) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  ts, extra,
  LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 10000 AND 0.908 * price < 500000;
