"""The endpoints that programs can ask, and what whoever starts the server can say."""
