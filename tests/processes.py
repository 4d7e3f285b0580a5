"""Programs that tests run."""

import subprocess


def succeeds(command, **how):
    """What a program that ended in 0 has said: its `stdout` and `stderr`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert not done.returncode, (done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done
