"""A real federation: the same algorithms between machines that do not trust the post.

Parties are long-lived programs around `algorithm.local` and `combine`. Letters are
idempotent, signed and encrypted end to end; a party writes its ledger, then its
checkpoint, then sends, so that any of them can be killed at any moment and go on. What
carries the letters (`Post`) may lose, repeat, delay and reorder them.
"""
