"""Values as JSON, files that are whole or not there, and the directory that holds a run."""

from kvbench.store.files import write_json, write_text
from kvbench.store.manifest import Manifest
from kvbench.store.run import RunDirectory, keep
from kvbench.store.values import plain, read
