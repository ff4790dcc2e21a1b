"""What the page asks of the server: functions of an address and fields, whose answers are JSON."""
