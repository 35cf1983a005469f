//! Probabilities of counts in Loader's saddle-point form (C. Loader, *Fast and accurate computation
//! of binomial probabilities*, 2000): a sum of small terms instead of the difference of large ones,
//! so that relative errors stay near rounding at rates of 1e6, where `x ln m - m - ln x!` has lost
//! seven digits.

use super::count::{sigmoid, softplus};

/// The logarithm of the Poisson probability of `x`.
#[inline]
pub(super) fn ln_poisson(x: f64, rate: f64) -> f64 {
    if x == 0.0 {
        return -rate;
    }
    if rate == 0.0 {
        return f64::NEG_INFINITY;
    }
    -stirling_error(x) - deviance(x, rate) - 0.5 * (std::f64::consts::TAU * x).ln()
}

/// The logarithm of the binomial probability of `x` successes and `y` failures.
#[inline]
pub(super) fn ln_binomial(x: f64, y: f64, logit: f64) -> f64 {
    let (ln_p, ln_q) = (-softplus(-logit), -softplus(logit));
    if x == 0.0 {
        return if y == 0.0 { 0.0 } else { y * ln_q };
    }
    if y == 0.0 {
        return x * ln_p;
    }
    let n = x + y;
    let (p, q) = (sigmoid(logit), sigmoid(-logit));
    if n * p < f64::MIN_POSITIVE || n * q < f64::MIN_POSITIVE {
        let ln_choose = libm::lgamma(n + 1.0) - libm::lgamma(x + 1.0) - libm::lgamma(y + 1.0);
        return ln_choose + x * ln_p + y * ln_q;
    }
    let correction = stirling_error(n) - stirling_error(x) - stirling_error(y);
    correction
        - deviance(x, n * p)
        - deviance(y, n * q)
        - 0.5 * (std::f64::consts::TAU * x * (y / n)).ln()
}

/// `ln x! - ln(sqrt(2 pi x) (x / e)^x)`: Loader's `stirlerr`, for real `x > 0`.
#[inline]
fn stirling_error(x: f64) -> f64 {
    if x <= 15.0 {
        let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
        return libm::lgamma(x + 1.0) - (x + 0.5) * x.ln() + x - half_ln_tau;
    }
    // The Stirling series; the first term left out is below 3e-17 at 15.
    const TERMS: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    let inverse_square = 1.0 / (x * x);
    let sum = TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum * inverse_square + term);
    sum / x
}

/// `x ln(x / m) + m - x` without cancellation near `x = m`: Loader's `bd0`.
#[inline]
pub(super) fn deviance(x: f64, m: f64) -> f64 {
    let gap = x - m;
    if gap.abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() - gap;
    }
    let v = gap / (x + m);
    let mut sum = gap * v;
    let mut power = 2.0 * x * v;
    for j in 1..1000 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}
