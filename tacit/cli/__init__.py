"""The command line: `tacit --help`.

Nothing heavy is imported here, so that help and mistyped commands answer at once.
"""

from tacit.cli.app import main

__all__ = ["main"]
