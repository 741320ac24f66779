-- Expand bids: the bids on auctions of category 10, with what is known of the auction.
-- As printed.
SELECT auction, bidder, price, channel, url, B.ts AS bid_ts, B.extra AS bid_extra,
  item, description, initial_bid, reserve, A.ts AS auction_ts, expires, seller, category, A.extra AS auction_extra
FROM bid B INNER JOIN auction A ON B.auction = A.id
WHERE A.category = 10;
