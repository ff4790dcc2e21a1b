"""The panels on the way through the model: a map with live shapes, and one for each station."""
