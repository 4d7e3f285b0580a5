"""The option that names a plug-in."""

import click

plugin_option = click.option(
    "--plugin",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="A shared object with kernels of your own, beside ours.",
)
