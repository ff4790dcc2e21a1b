"""What scores."""
