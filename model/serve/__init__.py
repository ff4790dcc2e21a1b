"""Many requests on few cores: batches, turns, devices."""
