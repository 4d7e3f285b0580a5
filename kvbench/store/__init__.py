"""Values as JSON, and files that are whole or not there."""

from kvbench.store.files import read_json, write_json
from kvbench.store.values import plain, point, record

__all__ = ["plain", "point", "read_json", "record", "write_json"]
