"""From a network to ids: steps, greedy, beam, and the traces of what was decoded."""
