"""Writing logs with Spark: tasks stage parts, the driver commits them."""
