-- Bidding statistics: how many bids, bidders and auctions a day has had so far, in three ranks of price.
-- As printed, over all bids so far, with prices of the generator.
SELECT DATE_FORMAT(ts, 'yyyy-MM-dd') AS day,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 100) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 100 AND price < 10000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 10000) AS rank3_bids,
  COUNT(DISTINCT bidder) AS total_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price < 100) AS rank1_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price >= 100 AND price < 10000) AS rank2_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000) AS rank3_bidders,
  COUNT(DISTINCT auction) AS total_auctions,
  COUNT(DISTINCT auction) FILTER (WHERE price < 100) AS rank1_auctions,
  COUNT(DISTINCT auction) FILTER (WHERE price >= 100 AND price < 10000) AS rank2_auctions,
  COUNT(DISTINCT auction) FILTER (WHERE price >= 10000) AS rank3_auctions
FROM bid
GROUP BY DATE_FORMAT(ts, 'yyyy-MM-dd');
