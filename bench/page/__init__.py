"""Parts of `python -m bench.browser`: the browser and the servers, and a module for each part of the page."""
