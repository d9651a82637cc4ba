"""The commands that read and measure logs."""
