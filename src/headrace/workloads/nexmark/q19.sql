-- Top ten: the ten highest bids of each auction, with their places.
-- As printed, over all bids so far.
SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
  FROM bid
)
WHERE rank_number <= 10;
