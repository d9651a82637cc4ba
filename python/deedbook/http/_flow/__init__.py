"""The steps of a sender, without I/O: batches, retries, rates."""
