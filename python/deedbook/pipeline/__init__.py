"""From live sources through logs to tables and a report: ``deedbook pipeline``.

Sources are read into a log each (bronze), logs into one table of typed events (silver), and the
table into counts (gold). Kill any process of it at any moment: a later run goes on where it was,
and each event counts once.
"""
