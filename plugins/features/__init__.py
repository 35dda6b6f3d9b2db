"""The built-in features: columns of the observation. Market features read the bars, portfolio features the account."""

from bellmark.component import Feature
from bellmark.plugins.features.average_distance import AverageDistance
from bellmark.plugins.features.average_true_range import AverageTrueRange
from bellmark.plugins.features.bars_in_position import BarsInPosition
from bellmark.plugins.features.bollinger_score import BollingerScore
from bellmark.plugins.features.close_location import CloseLocation
from bellmark.plugins.features.drawdown_from_high import DrawdownFromHigh
from bellmark.plugins.features.ema_distance import EmaDistance
from bellmark.plugins.features.equity_drawdown import EquityDrawdown
from bellmark.plugins.features.equity_return import EquityReturn
from bellmark.plugins.features.held_exposure import HeldExposure
from bellmark.plugins.features.log_return import LogReturn
from bellmark.plugins.features.opening_gap import OpeningGap
from bellmark.plugins.features.parkinson_volatility import ParkinsonVolatility
from bellmark.plugins.features.position_exposure import PositionExposure
from bellmark.plugins.features.price_level import PriceLevel
from bellmark.plugins.features.range_position import RangePosition
from bellmark.plugins.features.realized_volatility import RealizedVolatility
from bellmark.plugins.features.relative_volume import RelativeVolume
from bellmark.plugins.features.rsi import RelativeStrengthIndex
from bellmark.plugins.features.session_cosine import SessionCosine
from bellmark.plugins.features.session_left import SessionLeft
from bellmark.plugins.features.session_sine import SessionSine
from bellmark.plugins.features.unrealized_return import UnrealizedReturn
from bellmark.plugins.features.up_ratio import UpRatio
from bellmark.plugins.features.volume_trend import VolumeTrend

MARKET_FEATURES: list[type[Feature]] = [
    LogReturn,
    RealizedVolatility,
    ParkinsonVolatility,
    RangePosition,
    AverageDistance,
    EmaDistance,
    RelativeStrengthIndex,
    AverageTrueRange,
    BollingerScore,
    RelativeVolume,
    VolumeTrend,
    CloseLocation,
    OpeningGap,
    PriceLevel,
    DrawdownFromHigh,
    UpRatio,
    SessionSine,
    SessionCosine,
]
PORTFOLIO_FEATURES: list[type[Feature]] = [
    PositionExposure,
    HeldExposure,
    UnrealizedReturn,
    BarsInPosition,
    EquityDrawdown,
    EquityReturn,
    SessionLeft,
]
FEATURES = MARKET_FEATURES + PORTFOLIO_FEATURES
