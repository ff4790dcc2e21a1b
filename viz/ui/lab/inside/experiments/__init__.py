"""The panels that try one formula out, of the paper's or of its ancestors'."""
