"""What leaves a run: a model that reads rows as they come and carries its privacy."""

from tacita.trained.card import ModelCard, card_of
from tacita.trained.files import load_model
from tacita.trained.model import TrainedModel, from_problem

__all__ = ["ModelCard", "TrainedModel", "card_of", "from_problem", "load_model"]
