"""Bounds for account features: an account near ruin has ratios far beyond any that matter, and an observation must stay finite."""


def bounded(value, limit):
    """The value, held within -limit and limit. NaN stays NaN."""
    if value > limit:
        return limit
    if value < -limit:
        return -limit
    return value


def squashed(value):
    """value / (1 + |value|): the value itself near 0, within -1 and 1 everywhere."""
    return value / (1.0 + abs(value))
