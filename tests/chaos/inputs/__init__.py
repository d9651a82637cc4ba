"""Producers of a trial: processes that fill its inputs, and note each line."""
