"""A private PostgreSQL and Valkey, kept in one folder, that end with the process that runs them."""

from truerank.embedded.engines import Engines, start_engines
from truerank.embedded.folder import default_data_dir

__all__ = ["Engines", "default_data_dir", "start_engines"]
