"""Volume arithmetic that several features share. An unknown volume is NaN and stays out of every mean."""


def mean_volume(t, volume_T, window):
    """Mean of the known volumes of the `window` bars that end at t; 0 where none is known."""
    total = 0.0
    known = 0
    for k in range(t - window + 1, t + 1):
        if volume_T[k] >= 0.0:  # false for NaN
            total += volume_T[k]
            known += 1
    return total / float(known) if known > 0 else 0.0


def contrast(first, second):
    """(first - second) / (first + second), within -1 and 1: tanh of half the log of their ratio; 0 for two zeros."""
    total = first + second
    return (first - second) / total if total > 0.0 else 0.0
