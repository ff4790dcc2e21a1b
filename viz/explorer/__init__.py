"""What the page's explorer asks besides the maps: overlays, a second sentence, and edges cut out of the model."""
