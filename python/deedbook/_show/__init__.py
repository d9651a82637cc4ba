"""Text, pages and charts of results."""
