"""Losses: what the network's outputs mean, the target they follow, and the gradient."""

from bellmark.plugins.losses.c51 import C51
from bellmark.plugins.losses.mse import MeanSquaredError

LOSSES = [C51, MeanSquaredError]
