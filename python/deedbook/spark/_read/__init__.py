"""Reading logs with Spark: batch and streaming."""
