"""What looks inside a pass: one file a method."""
