"""How long tests wait for an event before they call it a hang.

Nothing passes or fails by how long it took: a busy machine may take its time.
"""

HANG = 300.0
