"""The engines of a job: Spark, and Sail, which runs Spark's DataFrames without a JVM."""
