"""What `python -m bench.browser` is made of: the browser, where it runs, and each part of the page by itself."""
