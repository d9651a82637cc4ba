"""The formats of logs behind the data source."""
