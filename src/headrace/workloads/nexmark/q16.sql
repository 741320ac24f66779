-- Channel statistics: the same of each channel, with the minute of its last bid.
-- As printed, over all bids so far, with prices of the generator.
SELECT channel, DATE_FORMAT(ts, 'yyyy-MM-dd') AS day, MAX(DATE_FORMAT(ts, 'HH:mm')) AS minute,
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
GROUP BY channel, DATE_FORMAT(ts, 'yyyy-MM-dd');
