"""All named endpoints: importing a module registers its own."""

from viz.server import api, why_api
from viz.server.endpoints import ENDPOINTS, build, table

__all__ = ("ENDPOINTS", "api", "build", "table", "why_api")
