"""Trials of the pipeline of examples/pipeline: killed again and again, then checked."""
