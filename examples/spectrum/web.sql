-- The views of each page in the last five minutes, every minute. There are too many views to keep them for long,
-- and nobody needs the last one of them: WEAK.
CREATE STREAM page_view (ts TIMESTAMP, page STRING)
  FROM csv OPTIONS (path 'web.csv') TIMESTAMP BY ts DISORDER 30 MINUTES;

SELECT page, COUNT(*) AS views FROM page_view [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY page;
