"""Price arithmetic that several features share. Prices are int64 quanta; differences are taken before anything is rounded."""

from bellmark.math import log


def log_change(new, old):
    """log(new / old); where a price is not positive, the bounded change (new - old) / max(|new|, |old|), and 0 for two zeros."""
    if new > 0 and old > 0:
        return log(float(new) / float(old))
    size = max(abs(new), abs(old))
    if size == 0:
        return 0.0
    return float(new - old) / float(size)


def highest(t, high_T, window):
    """The highest high of the `window` bars that end at t."""
    value = high_T[t]
    for k in range(t - window + 1, t):
        value = max(value, high_T[k])
    return value


def lowest(t, low_T, window):
    """The lowest low of the `window` bars that end at t."""
    value = low_T[t]
    for k in range(t - window + 1, t):
        value = min(value, low_T[k])
    return value


def position_in_range(price, low, high):
    """(price - low) / (high - low); 0.5 in a range without width."""
    if high <= low:
        return 0.5
    return float(price - low) / float(high - low)
