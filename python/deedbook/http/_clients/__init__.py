"""The HTTP clients of the senders."""
