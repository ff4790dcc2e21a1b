"""What guards the door: endpoints, bounds, visitors' state, discretion."""
