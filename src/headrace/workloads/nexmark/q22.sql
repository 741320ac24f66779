-- Folders of URLs: every bid with the three folders of its URL.
-- As printed, with Spark's SPLIT_PART, which counts from 1, for Flink's SPLIT_INDEX, which counts from 0.
SELECT auction, bidder, price, channel,
  SPLIT_PART(url, '/', 4) AS dir1,
  SPLIT_PART(url, '/', 5) AS dir2,
  SPLIT_PART(url, '/', 6) AS dir3
FROM bid;
