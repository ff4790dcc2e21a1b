"""What experiments on the model found, as the page draws it."""
