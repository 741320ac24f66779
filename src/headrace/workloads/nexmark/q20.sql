-- Expand bids: the bids on auctions of category 10, with what is known of the auction.
-- A bid meets its auction when it comes, so that no bids are kept.
SELECT auction, bidder, price, channel, url, B.ts AS bid_ts, B.extra AS bid_extra,
  item, description, initial_bid, reserve, A.ts AS auction_ts, expires, seller, category, A.extra AS auction_extra
FROM bid B INNER JOIN auction A WINDOW(RANGE UNBOUNDED) ON B.auction = A.id
WHERE A.category = 10;
