-- Each hour appears once no order can come for it any more: when an hour has passed since its end.
CREATE STREAMING TABLE by_hour AS
SELECT window.start AS hour, item, count(*) AS orders, round(sum(amount), 2) AS amount
FROM STREAM silver WATERMARK time DELAY OF INTERVAL 1 HOUR
GROUP BY window(time, '1 hour'), item;

-- Made again of all of silver each time.
CREATE MATERIALIZED VIEW totals AS
SELECT item, count(*) AS orders, round(sum(amount), 2) AS amount FROM silver GROUP BY item;
