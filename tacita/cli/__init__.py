"""The command line: `tacita --help`.

Nothing heavy is imported here, so that help and mistyped commands answer at once.
"""

from tacita.cli.app import main

__all__ = ["main"]
