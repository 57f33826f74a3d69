"""The live page: how far a run or a party is, in a browser on the same machine.

A source looks at a folder and says what is in it (`view`); a feed asks it while
somebody looks, and sends what changed; the server answers on loopback only. Programs
are never asked or held up: all that is read are the files that they leave.
"""

from tacita.watch.server import LivePage
from tacita.watch.sources import federation_source, run_source

__all__ = ["LivePage", "federation_source", "run_source"]
