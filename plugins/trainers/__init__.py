"""Trainers: the algorithms."""

from bellmark.plugins.trainers.dqn import DQN

TRAINERS = [DQN]
