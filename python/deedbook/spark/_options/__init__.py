"""The options of the data source: names, paths, columns."""
