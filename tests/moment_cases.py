"""Comparing a sample with a formula: the deviation allowed is 4.5 standard errors, which a right formula passes but for 7 in a million."""

import numpy as np

ERRORS = 4.5


def within(estimate, right, standard_error):
    """An estimate against its formula."""
    assert standard_error > 0
    assert abs(estimate - right) <= ERRORS * standard_error, f"{estimate} is {(estimate - right) / standard_error:.1f} errors from {right}"


def mean_is(values, right):
    """The mean of independent values (or of martingale differences), whose standard error is their deviation over sqrt(n)."""
    values = np.asarray(values, float).ravel()
    within(values.mean(), right, values.std(ddof=1) / np.sqrt(values.size))
