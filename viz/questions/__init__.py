"""The questions of the page: functions of an address and fields that return JSON."""
