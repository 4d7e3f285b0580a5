"""Values as JSON, and files that are whole or not there."""

from kvbench.store.files import write_json
from kvbench.store.values import plain, point, record

__all__ = ["plain", "point", "record", "write_json"]
