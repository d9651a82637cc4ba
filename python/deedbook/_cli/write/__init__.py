"""The commands that add records or send them."""
