"""Networks of torchvision, timm and transformers with random weights, by their names."""

from . import pictures, rows, sounds, words  # noqa: F401
from .common import NETWORKS, Flat

__all__ = ["NETWORKS", "Flat"]
