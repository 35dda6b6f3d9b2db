"""Elementary functions with the same bits on every backend: exp, expm1, log, log1p, tanh, sqrt and sine and cosine of a turn.

Parity code (environment, features, rewards, metrics) calls these and not `math` or `numpy`: a libm differs between platforms, and CUDA's
expf uses an approximate instruction. Each is argument reduction (Cody and Waite, 1980) and a Chebyshev-fitted polynomial, in additions,
multiplications, divisions and moves of bits alone. Nothing depends on a fused multiply-add; build with contraction off.

`exp`, `log` ... take and give float64; `exp_f32`, `log_f32` ... take and give float32 and hold only float32 constants, so that GPU row
code stays in single precision. Plain Python functions: Numba lowers them, and they run as they are on one number.

Largest error measured against mpmath in units in the last place: float32 exp 1.04, log 0.81, tanh 1.30 (over all finite inputs);
float64 exp 0.91, log 0.82, log1p 0.77, tanh 1.26, expm1 1.94, sine and cosine of a turn 1.64.
NaN gives NaN; the infinities, overflow, underflow and signed zeros follow IEEE 754 (C99 annex F).
"""

from math import sqrt as ieee_sqrt  # an instruction, not a library's series; numba-cuda has no np.sqrt

import numpy as np

# ---- float64 constants -------------------------------------------------------------------------------------------------------------
_ZERO, _HALF, _ONE, _TWO, _FOUR = np.float64(0.0), np.float64(0.5), np.float64(1.0), np.float64(2.0), np.float64(4.0)
_INF, _NAN = np.float64(np.inf), np.float64(np.nan)
_LOG2_E = np.float64(1.4426950408889634)
# ln 2 in two parts; the high one has 32 bits, so that a product with an exponent is exact
_LN2_HIGH, _LN2_LOW = np.float64(0.6931471803691238), np.float64(1.9082149292705877e-10)
_ROUND = np.float64(6755399441055744.0)  # 1.5 * 2^52: adding and subtracting it rounds to an integer
_EXP_MAX, _EXP_MIN = np.float64(709.782712893384), np.float64(-745.1332191019412)
_TURN, _TURN_MAX = np.float64(6.283185307179586), np.float64(1125899906842624.0)
_TINY, _SMALLEST_NORMAL, _SCALE_UP = np.float64(1e-9), np.float64(2.2250738585072014e-308), np.float64(18014398509481984.0)
_TANH_SWITCH, _TANH_ONE, _EXPM1_SMALL = np.float64(0.625), np.float64(22.0), np.float64(0.34657359027997264)
_EXPM1_MIN, _LOG1P_SMALL = np.float64(-40.0), np.float64(1e-16)

# (exp(r) - 1 - r) / r^2 and (expm1(r) - r - r^2/2) / r^3 on |r| <= ln(2)/2, error 2^-59 and 2^-63
_E0, _E1, _E2, _E3 = np.float64(0.5), np.float64(0.1666666666666667), np.float64(0.04166666666666667), np.float64(0.008333333333326084)
_E4, _E5, _E6 = np.float64(0.0013888888888883711), np.float64(0.0001984126987500228), np.float64(2.480158732567746e-05)
_E7, _E8, _E9 = np.float64(2.755725517000089e-06), np.float64(2.755727347871858e-07), np.float64(2.5105312729622103e-08)
_E10 = np.float64(2.09147553258932e-09)
_X0, _X1, _X2 = np.float64(0.16666666666666666), np.float64(0.04166666666666667), np.float64(0.008333333333333333)
_X3, _X4, _X5 = np.float64(0.0013888888888883711), np.float64(0.0001984126984126639), np.float64(2.480158732567746e-05)
_X6, _X7, _X8 = np.float64(2.755731924004356e-06), np.float64(2.755727347871858e-07), np.float64(2.505207789275738e-08)
_X9, _X10 = np.float64(2.09147553258932e-09), np.float64(1.608437344642417e-10)
# (log((1+s)/(1-s)) - 2 s) / s^3 in s^2, for s up to (sqrt 2 - 1)/(sqrt 2 + 1), error 2^-51 before the factor s^2 / 2
_L0, _L1, _L2 = np.float64(0.666666666666667), np.float64(0.3999999999989827), np.float64(0.28571428626533335)
_L3, _L4, _L5 = np.float64(0.22222211043822487), np.float64(0.18182895746801428), np.float64(0.1533150172120742)
_L6 = np.float64(0.1461916477718642)
# (tanh(x) - x) / x^3 in x^2, for |x| <= 0.625, error 2^-57
_T0, _T1, _T2 = np.float64(-0.3333333333333333), np.float64(0.13333333333333042), np.float64(-0.05396825396789636)
_T3, _T4, _T5 = np.float64(0.02186948851898143), np.float64(-0.008863235102653483), np.float64(0.0035921217436959856)
_T6, _T7, _T8 = np.float64(-0.0014557753532096296), np.float64(0.0005896603606552671), np.float64(-0.0002375896885211701)
_T9, _T10, _T11 = np.float64(9.256923588512033e-05), np.float64(-3.119892666773487e-05), np.float64(6.484104982405479e-06)
# (sin(x) - x) / x^3 and (cos(x) - 1 + x^2/2) / x^4 in x^2, for |x| <= pi/4, error 2^-66 and 2^-70
_S0, _S1, _S2 = np.float64(-0.16666666666666666), np.float64(0.008333333333333331), np.float64(-0.0001984126984126504)
_S3, _S4, _S5 = np.float64(2.755731921932058e-06), np.float64(-2.50521062259944e-08), np.float64(1.6058530596645953e-10)
_S6 = np.float64(-7.586636882825159e-13)
_C0, _C1, _C2 = np.float64(0.041666666666666664), np.float64(-0.0013888888888888887), np.float64(2.4801587301584632e-05)
_C3, _C4, _C5 = np.float64(-2.755731922139249e-07), np.float64(2.0876755787492604e-09), np.float64(-1.1470460319209511e-11)
_C6 = np.float64(4.745838412531023e-14)


def exp(x):
    """e to the power x, float64."""
    x = np.float64(x)
    if x != x:
        return x
    if x > _EXP_MAX:
        return _INF
    if x < _EXP_MIN:
        return _ZERO
    n = (x * _LOG2_E + _ROUND) - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * (_E8 + r * (_E9 + r * _E10)))))
    p = _E0 + r * (_E1 + r * (_E2 + r * (_E3 + r * p)))
    return _scale(_ONE + (r + r * r * p), np.int64(n))


def expm1(x):
    """e to the power x, less 1, exact to the last places where x is small; float64."""
    x = np.float64(x)
    if x != x:
        return x
    if x > _EXP_MAX:
        return _INF
    if x < _EXPM1_MIN:
        return -_ONE
    n = _ZERO
    r = x
    if x > _EXPM1_SMALL or x < -_EXPM1_SMALL:
        n = (x * _LOG2_E + _ROUND) - _ROUND
        r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    elif -_LOG1P_SMALL < x < _LOG1P_SMALL:  # keeps the sign of zero and does not touch subnormals
        return x
    p = _X4 + r * (_X5 + r * (_X6 + r * (_X7 + r * (_X8 + r * (_X9 + r * _X10)))))
    p = r + r * r * (_HALF + r * (_X0 + r * (_X1 + r * (_X2 + r * (_X3 + r * p)))))
    if n == _ZERO:
        return p
    k = np.int64(n)
    if k > np.int64(60):  # the 1 is below the last place, and 2^k may not exist
        return _scale(_ONE + p, k)
    power = _power_of_two(k)
    return power * p + (power - _ONE)


def log(x):
    """Natural logarithm, float64; minus infinity at 0, NaN below."""
    x = np.float64(x)
    if x != x or x == _INF:
        return x
    if x < _ZERO:
        return _NAN
    if x == _ZERO:
        return -_INF
    k = np.int64(0)
    if x < _SMALLEST_NORMAL:
        x = x * _SCALE_UP
        k = np.int64(-54)
    bits = _bits(x)
    shift = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)  # the mantissa lands in [sqrt 1/2, sqrt 2)
    f = np.int64(bits - (shift << np.int64(52))).view(np.float64) - _ONE
    return _log_of_parts(f, np.float64(k + shift), _ZERO)


def log1p(x):
    """Natural logarithm of 1 + x, exact to the last places where x is small; float64."""
    x = np.float64(x)
    if x != x or x == _INF:
        return x
    if x < -_ONE:
        return _NAN
    if x == -_ONE:
        return -_INF
    if -_LOG1P_SMALL < x < _LOG1P_SMALL:
        return x
    u = _ONE + x
    bits = _bits(u)
    k = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
    if k == np.int64(0):
        return _log_of_parts(x, _ZERO, _ZERO)
    lost = (_ONE - (u - x)) if u >= _TWO else (x - (u - _ONE))  # what rounding 1 + x dropped
    f = np.int64(bits - (k << np.int64(52))).view(np.float64) - _ONE
    return _log_of_parts(f, np.float64(k), lost / u)


def _log_of_parts(f, k, correction):
    # k ln 2 + log(1 + f) + correction; small terms are added to each other first
    s = f / (_TWO + f)
    z = s * s
    r = z * (_L0 + z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * (_L5 + z * _L6))))))
    half = _HALF * f * f
    return k * _LN2_HIGH - ((half - (s * (half + r) + (k * _LN2_LOW + correction))) - f)


def tanh(x):
    """Hyperbolic tangent, float64; no infinity on the way."""
    x = np.float64(x)
    if x != x:
        return x
    a = -x if x < _ZERO else x
    if a < _TINY:
        return x
    if a < _TANH_SWITCH:
        y = x * x
        p = _T6 + y * (_T7 + y * (_T8 + y * (_T9 + y * (_T10 + y * _T11))))
        p = _T0 + y * (_T1 + y * (_T2 + y * (_T3 + y * (_T4 + y * (_T5 + y * p)))))
        return x + x * (y * p)
    t = _ONE if a > _TANH_ONE else _ONE - _TWO / (exp(_TWO * a) + _ONE)
    return -t if x < _ZERO else t


def sqrt(x):
    """Square root, float64: the correctly rounded instruction of IEEE 754, the same on every backend."""
    x = np.float64(x)
    return _NAN if x < _ZERO else np.float64(ieee_sqrt(x))


def sin_turn(u):
    """Sine of u turns, sin(2 pi u), float64; the reduction to an eighth of a turn is exact. NaN from |u| = 2^50 on."""
    u = np.float64(u)
    if not -_TURN_MAX < u < _TURN_MAX:
        return _NAN
    n = (_FOUR * u + _ROUND) - _ROUND
    return _turn(u - n / _FOUR, np.int64(n))


def cos_turn(u):
    """Cosine of u turns, cos(2 pi u), float64; the reduction to an eighth of a turn is exact. NaN from |u| = 2^50 on."""
    u = np.float64(u)
    if not -_TURN_MAX < u < _TURN_MAX:
        return _NAN
    n = (_FOUR * u + _ROUND) - _ROUND
    return _turn(u - n / _FOUR, np.int64(n) + np.int64(1))


def _turn(r, quadrant):
    x = r * _TURN
    y = x * x
    quadrant = quadrant & np.int64(3)
    if quadrant & np.int64(1):
        p = _C0 + y * (_C1 + y * (_C2 + y * (_C3 + y * (_C4 + y * (_C5 + y * _C6)))))
        value = _ONE - (_HALF * y - y * y * p)
    else:
        p = _S0 + y * (_S1 + y * (_S2 + y * (_S3 + y * (_S4 + y * (_S5 + y * _S6)))))
        value = x + x * (y * p)
    return -value if quadrant & np.int64(2) else value


def _bits(x):
    return np.float64(x).view(np.int64)


def _power_of_two(k):
    return np.int64((k + np.int64(1023)) << np.int64(52)).view(np.float64)


def _scale(y, k):
    # y * 2^k in two exact steps, so that 2^k never overflows and a subnormal result is rounded once
    half = k >> np.int64(1)
    return (y * _power_of_two(half)) * _power_of_two(k - half)


# ---- float32 constants -------------------------------------------------------------------------------------------------------------
_F_ZERO, _F_HALF, _F_ONE, _F_TWO, _F_FOUR = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0), np.float32(4.0)
_F_INF, _F_NAN = np.float32(np.inf), np.float32(np.nan)
_F_LOG2_E = np.float32(1.44269504)
_F_LN2_HIGH, _F_LN2_LOW = np.float32(0.693359375), np.float32(-0.000212194442)  # the high part has 9 bits
_F_ROUND = np.float32(12582912.0)  # 1.5 * 2^23
_F_EXP_MAX, _F_EXP_MIN = np.float32(88.7228394), np.float32(-103.972084)
_F_TURN, _F_TURN_MAX = np.float32(6.28318548), np.float32(1048576.0)
_F_TINY, _F_SMALLEST_NORMAL, _F_SCALE_UP = np.float32(1e-4), np.float32(1.17549435e-38), np.float32(33554432.0)
_F_TANH_SWITCH, _F_TANH_ONE = np.float32(0.625), np.float32(9.5)

_FE0, _FE1, _FE2 = np.float32(0.5), np.float32(0.166665763), np.float32(0.0416665524)
_FE3, _FE4 = np.float32(0.00836323295), np.float32(0.00139262504)
_FL0, _FL1, _FL2 = np.float32(0.666666865), np.float32(0.399887353), np.float32(0.295820236)
_FT0, _FT1, _FT2 = np.float32(-0.333333343), np.float32(0.133333042), np.float32(-0.0539592542)
_FT3, _FT4, _FT5 = np.float32(0.021768868), np.float32(-0.00834378041), np.float32(0.00229255762)
_FS0, _FS1, _FS2 = np.float32(-0.166666642), np.float32(0.00833274703), np.float32(-0.00019587639)
_FC0, _FC1, _FC2 = np.float32(0.0416666642), np.float32(-0.00138883013), np.float32(2.45476895e-05)


def exp_f32(x):
    """e to the power x, float32."""
    x = np.float32(x)
    if x != x:
        return x
    if x > _F_EXP_MAX:
        return _F_INF
    if x < _F_EXP_MIN:
        return _F_ZERO
    n = (x * _F_LOG2_E + _F_ROUND) - _F_ROUND
    r = (x - n * _F_LN2_HIGH) - n * _F_LN2_LOW
    p = _FE0 + r * (_FE1 + r * (_FE2 + r * (_FE3 + r * _FE4)))
    k = np.int32(n)
    half = np.int32(k >> np.int32(1))
    return ((_F_ONE + (r + r * r * p)) * _power_of_two_f32(half)) * _power_of_two_f32(np.int32(k - half))


def log_f32(x):
    """Natural logarithm, float32; minus infinity at 0, NaN below."""
    x = np.float32(x)
    if x != x or x == _F_INF:
        return x
    if x < _F_ZERO:
        return _F_NAN
    if x == _F_ZERO:
        return -_F_INF
    k = np.int32(0)
    if x < _F_SMALLEST_NORMAL:
        x = x * _F_SCALE_UP
        k = np.int32(-25)
    bits = _bits_f32(x)
    shift = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))  # the mantissa lands in [sqrt 1/2, sqrt 2)
    f = np.int32(bits - np.int32(shift << np.int32(23))).view(np.float32) - _F_ONE
    exponent = np.float32(np.int32(k + shift))
    s = f / (_F_TWO + f)
    z = s * s
    r = z * (_FL0 + z * (_FL1 + z * _FL2))
    half = _F_HALF * f * f
    return exponent * _F_LN2_HIGH - ((half - (s * (half + r) + exponent * _F_LN2_LOW)) - f)


def tanh_f32(x):
    """Hyperbolic tangent, float32; no infinity on the way."""
    x = np.float32(x)
    if x != x:
        return x
    a = -x if x < _F_ZERO else x
    if a < _F_TINY:
        return x
    if a < _F_TANH_SWITCH:
        y = x * x
        p = _FT0 + y * (_FT1 + y * (_FT2 + y * (_FT3 + y * (_FT4 + y * _FT5))))
        return x + x * (y * p)
    t = _F_ONE if a > _F_TANH_ONE else _F_ONE - _F_TWO / (exp_f32(_F_TWO * a) + _F_ONE)
    return -t if x < _F_ZERO else t


def sqrt_f32(x):
    """Square root, float32: the correctly rounded instruction of IEEE 754, the same on every backend."""
    x = np.float32(x)
    return _F_NAN if x < _F_ZERO else np.float32(ieee_sqrt(x))


def sin_turn_f32(u):
    """Sine of u turns, sin(2 pi u), float32; the reduction to an eighth of a turn is exact. NaN from |u| = 2^20 on."""
    u = np.float32(u)
    if not -_F_TURN_MAX < u < _F_TURN_MAX:
        return _F_NAN
    n = (_F_FOUR * u + _F_ROUND) - _F_ROUND
    return _turn_f32(u - n / _F_FOUR, np.int32(n))


def cos_turn_f32(u):
    """Cosine of u turns, cos(2 pi u), float32; the reduction to an eighth of a turn is exact. NaN from |u| = 2^20 on."""
    u = np.float32(u)
    if not -_F_TURN_MAX < u < _F_TURN_MAX:
        return _F_NAN
    n = (_F_FOUR * u + _F_ROUND) - _F_ROUND
    return _turn_f32(u - n / _F_FOUR, np.int32(np.int32(n) + np.int32(1)))


def _turn_f32(r, quadrant):
    x = r * _F_TURN
    y = x * x
    if quadrant & np.int32(1):
        value = _F_ONE - (_F_HALF * y - y * y * (_FC0 + y * (_FC1 + y * _FC2)))
    else:
        value = x + x * (y * (_FS0 + y * (_FS1 + y * _FS2)))
    return -value if quadrant & np.int32(2) else value


def _bits_f32(x):
    return np.float32(x).view(np.int32)


def _power_of_two_f32(k):
    return np.int32(np.int32(k + np.int32(127)) << np.int32(23)).view(np.float32)
