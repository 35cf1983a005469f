//! Gauss rules for sums over many integers and for integrals, on panels of growing length.
//!
//! A law with a million likely values is smooth: the sum of `w(x) g(x)` over a panel of `N`
//! consecutive integers is a weighted sum of 16 values, exact for polynomials of degree 31, at the
//! zeros of the polynomial orthogonal on those integers (the discrete Chebyshev polynomial). With
//! panels at most three times as long as their distance from the end of the support, where the
//! probabilities of a negative binomial law behave like a power of `x`, the error is about
//! `3^-32 = 5e-16` of the panel's sum.

use std::sync::OnceLock;

use crate::distribution::CountLaw;

/// The number of nodes of a rule.
pub(super) const NODES: usize = 16;

/// Rules are kept for panels of 16, 24, 32, 48, 64, .. integers; the last has 2^38.
const SIZES: usize = 69;

/// Nodes on (-1, 1) and weights that sum to one.
#[derive(Debug)]
struct Rule {
    nodes: [f64; NODES],
    weights: [f64; NODES],
}

/// The rule for `points` equally spaced points, or for Lebesgue measure if `points` is infinite.
///
/// In `t = (2 x - N + 1) / N` the monic orthogonal polynomials satisfy
/// `p_{k+1} = t p_k - b_k p_{k-1}`, `b_k = k^2 (1 - k^2 / N^2) / (4 k^2 - 1)`. The nodes are the
/// eigenvalues of the Jacobi matrix, found by bisection with Sturm sequences, and the weights are
/// one over the sum of the squared orthonormal polynomials.
fn gauss_rule(points: f64) -> Rule {
    let mut b = [0.0; NODES];
    for (k, b) in b.iter_mut().enumerate().skip(1) {
        let square = (k * k) as f64;
        *b = square * (1.0 - square / (points * points)) / (4.0 * square - 1.0);
    }
    let eigenvalues_below = |t: f64| {
        let mut pivot = -t;
        let mut count = usize::from(pivot < 0.0);
        for b in &b[1..] {
            let safe = if pivot == 0.0 { f64::EPSILON } else { pivot };
            pivot = -t - b / safe;
            count += usize::from(pivot < 0.0);
        }
        count
    };
    let mut rule = Rule {
        nodes: [0.0; NODES],
        weights: [0.0; NODES],
    };
    for j in NODES / 2..NODES {
        let (mut lo, mut hi) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (lo + hi);
            if eigenvalues_below(middle) > j {
                hi = middle;
            } else {
                lo = middle;
            }
        }
        let node = 0.5 * (lo + hi);
        let (mut previous, mut current) = (0.0, 1.0);
        let mut squares = 1.0;
        for k in 0..NODES - 1 {
            let next = (node * current - b[k].sqrt() * previous) / b[k + 1].sqrt();
            (previous, current) = (current, next);
            squares += current * current;
        }
        let mirror = NODES - 1 - j;
        rule.nodes[j] = node;
        rule.nodes[mirror] = -node;
        rule.weights[j] = 1.0 / squares;
        rule.weights[mirror] = 1.0 / squares;
    }
    rule
}

fn panel_size(index: usize) -> u64 {
    let base = if index.is_multiple_of(2) { 16 } else { 24 };
    base << (index / 2)
}

fn sum_rule(index: usize) -> &'static Rule {
    static RULES: [OnceLock<Rule>; SIZES] = [const { OnceLock::new() }; SIZES];
    RULES[index].get_or_init(|| gauss_rule(panel_size(index) as f64))
}

/// Visits nodes and weights of `sum_{x = first}^{last} g(x)`; `longest(a)` bounds the length of a
/// panel that starts at `a`.
pub(super) fn sum_nodes(
    first: u64,
    last: u64,
    longest: impl Fn(f64) -> f64,
    mut visit: impl FnMut(f64, f64),
) {
    let mut start = first;
    while start <= last {
        let left = last - start + 1;
        let length = longest(start as f64).min(left as f64);
        if length < panel_size(1) as f64 {
            let count = left.min(panel_size(0));
            for x in start..start + count {
                visit(x as f64, 1.0);
            }
            start += count;
            continue;
        }
        let mut index = 1;
        while index + 1 < SIZES && panel_size(index + 1) as f64 <= length {
            index += 1;
        }
        let size = panel_size(index);
        let centre = start as f64 + (size - 1) as f64 * 0.5;
        let rule = sum_rule(index);
        for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
            visit(centre + 0.5 * size as f64 * node, weight * size as f64);
        }
        start += size;
    }
}

/// Visits nodes and weights of the integral over one panel of the real line.
pub(super) fn integral_nodes(start: f64, end: f64, mut visit: impl FnMut(f64, f64)) {
    static RULE: OnceLock<Rule> = OnceLock::new();
    let rule = RULE.get_or_init(|| gauss_rule(f64::INFINITY));
    let (centre, half) = (0.5 * (start + end), 0.5 * (end - start));
    for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
        visit(centre + half * node, weight * 2.0 * half);
    }
}

/// How long a panel of integers from `start` may be, so that a 16-point rule resolves the
/// probabilities of a law on it.
///
/// `1 / v(x) = -(d/dx)^2 ln P(x)` is the local variance; four local standard deviations of a
/// Gaussian, or three times the distance to the end of the support, keep the error near rounding.
pub(super) fn law_length(law: &CountLaw, start: f64) -> f64 {
    let from_zero = start + 1.0;
    match *law {
        CountLaw::Poisson { .. } => (3.0 * from_zero).min(4.0 * from_zero.sqrt()),
        CountLaw::NegativeBinomial { dispersion, .. } => {
            let local = from_zero * (from_zero / dispersion + 1.0);
            (3.0 * from_zero).min(4.0 * local.sqrt())
        }
        CountLaw::Binomial { trials, .. } => {
            let n = f64::from(trials);
            let deviation = |x: f64| ((x + 1.0) * (n - x + 1.0).max(0.0) / (n + 2.0)).sqrt();
            let length = (3.0 * from_zero).min(0.75 * (n + 1.0 - start));
            let length = length.min(4.0 * deviation(start));
            length.min(4.0 * deviation(start + length))
        }
    }
}

/// Integers `lo..=hi` outside of which each tail has probability at most `exp(-log_tail)`: by
/// Bernstein's inequality in closed form where it is sharp, which is cheaper than a search.
pub(super) fn window(law: &CountLaw, log_tail: f64) -> (u64, u64) {
    let variance = law.variance();
    match law {
        CountLaw::NegativeBinomial { .. } => law.window(log_tail),
        CountLaw::Poisson { .. } | CountLaw::Binomial { .. } => {
            let third = log_tail / 3.0;
            let reach = third + (third * third + 2.0 * log_tail * variance).sqrt();
            let lo = (law.mean() - reach).max(0.0).floor();
            let hi = (law.mean() + reach).ceil() as u64;
            (lo as u64, law.maximum().map_or(hi, |last| hi.min(last)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_sum_polynomials_of_degree_31_exactly() {
        for index in [0, 1, 2, 5, 9, 14] {
            let size = panel_size(index);
            let scaled = |x: f64| (2.0 * x - (size - 1) as f64) / size as f64;
            for power in [0, 1, 2, 8, 17, 30, 31] {
                let direct: f64 = (0..size).map(|x| scaled(x as f64).powi(power)).sum();
                let mut sum = 0.0;
                sum_nodes(
                    0,
                    size - 1,
                    |_| 1e30,
                    |x, weight| sum += weight * scaled(x).powi(power),
                );
                let error = (sum - direct).abs() / size as f64;
                assert!(error < 4e-15, "{size} {power} {error:e}");
            }
        }
    }

    #[test]
    fn the_rule_for_the_line_is_gauss_legendre() {
        let mut sum = 0.0;
        integral_nodes(0.0, 2.0, |x, weight| sum += weight * (-x).exp());
        assert!((sum - (1.0 - (-2.0_f64).exp())).abs() < 1e-15);
    }

    #[test]
    fn panels_sum_laws_to_one() {
        let laws = [
            CountLaw::Poisson { rate: 1e6 },
            CountLaw::Poisson { rate: 30.0 },
            CountLaw::Binomial {
                trials: 3_000_000,
                logit: -0.4,
            },
            CountLaw::Binomial {
                trials: 40,
                logit: 3.0,
            },
            CountLaw::NegativeBinomial {
                dispersion: 1.1,
                mean: 1e6,
            },
            CountLaw::NegativeBinomial {
                dispersion: 0.1,
                mean: 1e6,
            },
            CountLaw::NegativeBinomial {
                dispersion: 300.0,
                mean: 1e6,
            },
        ];
        for law in laws {
            let (lo, hi) = window(&law, 40.0);
            let (mut total, mut mean, mut nodes) = (0.0, 0.0, 0);
            sum_nodes(
                lo,
                hi,
                |a| law_length(&law, a),
                |x, weight| {
                    total += weight * law.pmf(x);
                    mean += weight * law.pmf(x) * x;
                    nodes += 1;
                },
            );
            assert!((total - 1.0).abs() < 2e-13, "{law:?} {:e}", total - 1.0);
            assert!((mean / law.mean() - 1.0).abs() < 2e-13, "{law:?}");
            assert!(nodes <= 480, "{law:?} {nodes}");
        }
    }
}
