"""Fits the polynomials of coefficients.rs and prints them, lowest power first, with the error of the fit; then prints the tables of
two_over_pi.rs.

Needs mpmath. A fit is the weighted least-squares polynomial at Chebyshev nodes; the weights follow Lawson's
iteration, which tends to the minimax polynomial. A ratio of polynomials is fitted in the same way, to `p - f·q = 0` with the
weights divided by the denominator of the round before (Sanathanan and Koerner, 1963).
"""

from mpmath import *

mp.dps = 50


def fit(function, weight, low, high, degree, rounds=25):
    """The coefficients of the best polynomial seen, and its greatest weighted error."""
    count = 6 * (degree + 1)
    nodes, points = chebyshev_nodes(low, high, count)
    values, weights = [function(x) for x in points], [weight(x) for x in points]
    basis = [[chebyt(j, u) for j in range(degree + 1)] for u in nodes]
    lawson, best = [mpf(1)] * count, None
    for _ in range(rounds):
        a, b = matrix(count, degree + 1), matrix(count, 1)
        for i in range(count):
            scale = sqrt(lawson[i]) * weights[i]
            b[i] = scale * values[i]
            for j in range(degree + 1):
                a[i, j] = scale * basis[i][j]
        c, _ = qr_solve(a, b)
        errors = [abs(fdot(basis[i], c) - values[i]) * weights[i] for i in range(count)]
        if best is None or max(errors) < best[0]:
            best = max(errors), c.copy()
        lawson = reweighted(lawson, errors)
    return best[0], to_powers(best[1], low, high)


def fit_ratio(function, weight, low, high, degrees, rounds=30):
    """The coefficients of the best numerator and denominator seen, the latter's lowest 1, and the greatest weighted error."""
    above, below = degrees
    count = 6 * (above + below + 2)
    _, points = chebyshev_nodes(low, high, count)
    values, weights = [function(x) for x in points], [weight(x) for x in points]
    # Powers of arguments up to 1, so that the equations stay well scaled.
    scaled = [x / high for x in points]
    lawson, denominators, best = [mpf(1)] * count, [mpf(1)] * count, None
    for _ in range(rounds):
        a, b = matrix(count, above + below + 1), matrix(count, 1)
        for i, t in enumerate(scaled):
            scale = sqrt(lawson[i]) * weights[i] / denominators[i]
            b[i] = scale * values[i]
            for j in range(above + 1):
                a[i, j] = scale * t**j
            for j in range(1, below + 1):
                a[i, above + j] = -scale * values[i] * t**j
        c, _ = qr_solve(a, b)
        p, q = list(c[: above + 1]), [mpf(1), *c[above + 1 :]]
        denominators = [polyval(q[::-1], t) for t in scaled]
        found = [polyval(p[::-1], t) / d for t, d in zip(scaled, denominators)]
        errors = [abs(r - v) * w for r, v, w in zip(found, values, weights)]
        if min(denominators) > 0 and (best is None or max(errors) < best[0]):
            best = max(errors), p, q
        lawson = reweighted(lawson, errors)
    unscaled = lambda c: [v / high**j for j, v in enumerate(c)]
    return best[0], unscaled(best[1]), unscaled(best[2])


def chebyshev_nodes(low, high, count):
    """Chebyshev's nodes between -1 and 1, and between `low` and `high`."""
    nodes = [cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    return nodes, [(low + high) / 2 + (high - low) / 2 * u for u in nodes]


def reweighted(lawson, errors):
    """The weights of the next round: larger where the errors are."""
    total = fdot(lawson, errors)
    return [l * e / total * len(errors) + mpf(10) ** -12 for l, e in zip(lawson, errors)]


def to_powers(chebyshev, low, high):
    """Coefficients of powers of x from those of Chebyshev polynomials of (2x - low - high) / (high - low)."""
    degree = len(chebyshev) - 1
    polynomials = [[mpf(1)], [mpf(0), mpf(1)]]
    while len(polynomials) <= degree:
        following = [mpf(0)] + [2 * v for v in polynomials[-1]]
        for i, v in enumerate(polynomials[-2]):
            following[i] -= v
        polynomials.append(following)
    inner = [mpf(0)] * (degree + 1)
    for c, polynomial in zip(chebyshev, polynomials):
        for i, v in enumerate(polynomial):
            inner[i] += c * v
    slope, offset = mpf(2) / (high - low), -(low + high) / (high - low)
    powers = [mpf(0)] * (degree + 1)
    for i, v in enumerate(inner):
        for j in range(i + 1):
            powers[j] += v * binomial(i, j) * slope**j * offset ** (i - j)
    return powers


def show(name, function, weight, low, high, degree, double):
    error, powers = fit(function, weight, mpf(low), mpf(high), degree)
    print(f"{name}, error 2^{float(log(error, 2)):.1f}\n    {text(powers, double)}")


def show_ratio(name, function, weight, low, high, degrees, double):
    error, above, below = fit_ratio(function, weight, mpf(low), mpf(high), degrees)
    print(f"{name}, error 2^{float(log(error, 2)):.1f}\n    {text(above, double)}\n    {text(below, double)}")


def text(powers, double):
    texts = [repr(float(c)) if double else nstr(c, 10, min_fixed=0, max_fixed=0) for c in powers]
    return f"[{', '.join(texts)}]"


def near_zero(series, function, below):
    return lambda x: series(x) if abs(x) < mpf(below) else function(x)


exp_tail = near_zero(lambda r: mpf(1) / 2 + r / 6, lambda r: (exp(r) - 1 - r) / r**2, "1e-20")
ln_tail = near_zero(lambda z: mpf(2) / 3 + 2 * z / 5, lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, "1e-20")
sin_tail = near_zero(lambda z: -mpf(1) / 6 + z / 120, lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, "1e-20")
cos_tail = near_zero(lambda z: mpf(1) / 24 - z / 720, lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, "1e-12")
erf_tail = near_zero(lambda z: 2 / sqrt(pi) * (1 - z / 3) - 1, lambda z: erf(sqrt(z)) / sqrt(z) - 1, "1e-25")
atan_tail = near_zero(lambda z: -mpf(1) / 3 + z / 5, lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, "1e-20")
asin_tail = near_zero(lambda z: mpf(1) / 6 + 3 * z / 40, lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z, "1e-20")
long_ln_tail = near_zero(
    lambda z: mpf(2) / 5 + 2 * z / 7, lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2 - 2 * z / 3) / z**2, "1e-12"
)

half_ln2 = log(2) / 2 * mpf("1.01")
ln_end = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * mpf("1.01")
trig_end = mpf("0.83") ** 2
atan_end = tan(pi / 8) ** 2 * mpf("1.01")
asin_end = mpf("0.2501")
erfc_root = lambda b: sqrt(erfc(1 + b))
for double, degrees in ((False, (4, 2, 2, 2, 6, 4, 4, 2)), (True, (10, 6, 5, 5, 12, 10, 12, 7))):
    kind = "DOUBLE" if double else "SINGLE"
    show(f"EXP_{kind}", exp_tail, lambda r: r * r / exp(r), -half_ln2, half_ln2, degrees[0], double)
    show(f"LN_{kind}", ln_tail, lambda z: (z + mpf("1e-6")) / 2, 0, ln_end, degrees[1], double)
    show(f"SIN_{kind}", sin_tail, lambda z: z + mpf("1e-3"), 0, trig_end, degrees[2], double)
    show(f"COS_{kind}", cos_tail, lambda z: z * z + mpf("1e-3"), 0, trig_end, degrees[3], double)
    show(f"ERF_SMALL_{kind}", erf_tail, lambda z: mpf(1), 0, 1, degrees[4], double)
    show(f"ATAN_{kind}", atan_tail, lambda z: z + mpf("1e-4"), 0, atan_end, degrees[5], double)
    show(f"ASIN_{kind}", asin_tail, lambda z: z + mpf("1e-4"), 0, asin_end, degrees[6], double)
    show(f"LONG_LN_{kind}", long_ln_tail, lambda z: (z**2 + mpf("1e-5")) / 2, 0, ln_end, degrees[7], double)
show_ratio("ERF_LARGE_SINGLE", erfc_root, lambda b: 2 * erfc_root(b), 0, 3, (4, 4), False)
show("ERF_LARGE_DOUBLE", lambda a: -log(erfc(a)), erfc, "0.95", "5.95", 18, True)


def show_two_over_pi(name, bits, step, groups, count, modulus):
    """2/pi times 2**(step * group) modulo a power of two, in parts of as many bits as a float has."""
    print(name)
    columns = []
    for group in range(groups):
        rest = 2 / pi * mpf(2) ** (step * group)
        rest -= mpf(2) ** modulus * nint(rest / mpf(2) ** modulus)
        columns.append([])
        for _ in range(count):
            with workprec(bits):
                part = +rest
            columns[-1].append(float(part))
            rest -= part
    for part in range(count):
        print([column[part] for column in columns])


mp.prec = 2000
show_two_over_pi("TWO_OVER_PI_SINGLE", 24, 16, 8, 4, 18)
show_two_over_pi("TWO_OVER_PI_DOUBLE", 53, 64, 16, 5, 34)
