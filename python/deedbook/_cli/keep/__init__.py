"""The commands that check, repair, copy and shrink logs."""
