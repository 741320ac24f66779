-- Average price for a category: the mean of the highest bids of its auctions so far.
-- As printed. AVG is a DOUBLE.
SELECT Q.category, AVG(Q.final) AS final
FROM (
  SELECT MAX(W.price) AS final, W.category
  FROM (
    SELECT A.id, A.category, B.price
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.ts BETWEEN A.ts AND A.expires
  ) W
  GROUP BY W.id, W.category
) Q
GROUP BY Q.category;
