"""Liars: attacks on letters, on rows, and on graphs."""

from tacita.robust.attack import Attack, Scene
from tacita.robust.dissensus import Dissensus
from tacita.robust.false_letters import (
    ALIE,
    FreeRider,
    InnerProduct,
    Mimic,
    Noise,
    NotFinite,
    Replacement,
    SignFlip,
)
from tacita.robust.one_of import OneOf
from tacita.robust.rows import Backdoor, CleanLabel, DenialOfService, LabelFlip

#: Every attack, known to run files by its name.
ATTACKS = (
    *(SignFlip, InnerProduct, ALIE, Replacement, Mimic, FreeRider, Noise, NotFinite),
    *(LabelFlip, CleanLabel, Backdoor, DenialOfService, Dissensus),
)

__all__ = [
    "ALIE",
    "ATTACKS",
    "Attack",
    "Backdoor",
    "CleanLabel",
    "DenialOfService",
    "Dissensus",
    "FreeRider",
    "InnerProduct",
    "LabelFlip",
    "Mimic",
    "Noise",
    "NotFinite",
    "OneOf",
    "Replacement",
    "Scene",
    "SignFlip",
]
