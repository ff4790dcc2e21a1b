"""JSON-ready data for the page: links, payloads, tiles, blocks of panels, and fields of its requests."""
