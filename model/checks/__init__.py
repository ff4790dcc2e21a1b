"""Live checks of one translation, most of them against torch.nn's own layers: verify.verify() runs them."""
