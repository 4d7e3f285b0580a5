"""Values as JSON, files that appear only when complete, and the directory of a run."""

from kvbench.store.files import write_json, write_text
from kvbench.store.manifest import Manifest
from kvbench.store.run import RunDirectory, keep
from kvbench.store.values import plain, read
