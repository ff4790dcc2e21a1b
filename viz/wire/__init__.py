"""What travels to the page, as plain JSON-ready values."""
