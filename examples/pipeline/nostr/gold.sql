CREATE STREAMING TABLE by_hour AS
SELECT window.start AS hour, kind, count(*) AS events
FROM STREAM silver WATERMARK time DELAY OF INTERVAL 1 DAY
GROUP BY window(time, '1 hour'), kind;

CREATE MATERIALIZED VIEW authors AS
SELECT pubkey, count(*) AS events, max(time) AS last FROM silver GROUP BY pubkey;
