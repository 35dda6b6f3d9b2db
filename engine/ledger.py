"""The ledger that the lane step writes: a row of whole numbers for every fill and every refused order, on every lane."""

from __future__ import annotations

COLUMNS = ("bar", "symbol", "cause", "reason", "lots", "reference", "spread", "slippage", "fee", "maker")
"""cause: of a fill (market.CAUSES), REFUSED for an order that did not fill; prices and costs in quanta, the fee in nano-currency."""
REFUSED = -1
ROWS_A_BAR = 8  # more than one account can fill and be refused in one symbol and bar


def append(ledger_LNEJ, ledger_count_LN, learner, n, bar, symbol, cause, reason, lots, reference, spread, slippage, fee, maker):
    """Writes a row, or only counts it where the ledger is full: whoever reads it sees that it was."""
    row = ledger_count_LN[learner, n]
    ledger_count_LN[learner, n] = row + 1
    if row < ledger_LNEJ.shape[2]:
        ledger_LNEJ[learner, n, row, 0] = bar
        ledger_LNEJ[learner, n, row, 1] = symbol
        ledger_LNEJ[learner, n, row, 2] = cause
        ledger_LNEJ[learner, n, row, 3] = reason
        ledger_LNEJ[learner, n, row, 4] = lots
        ledger_LNEJ[learner, n, row, 5] = reference
        ledger_LNEJ[learner, n, row, 6] = spread
        ledger_LNEJ[learner, n, row, 7] = slippage
        ledger_LNEJ[learner, n, row, 8] = fee
        ledger_LNEJ[learner, n, row, 9] = maker
