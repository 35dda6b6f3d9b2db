"""Rule strategies, one file each: the lane function `decide` gives the target exposure at the close of bar t."""

from bellmark.hookspecs import hookimpl


@hookimpl
def bellmark_strategies():
    from bellmark.strategies.buy_and_hold import BuyAndHold
    from bellmark.strategies.flat import Flat
    from bellmark.strategies.no_trade_band import NoTradeBand
    from bellmark.strategies.random import Random
    from bellmark.strategies.sma_cross import SmaCross

    return [BuyAndHold, Flat, NoTradeBand, Random, SmaCross]
