//! Lagrange interpolation between equally spaced knots.

/// The number of knots of one interpolating polynomial.
pub(super) const STENCIL: usize = 6;

/// The first of the six knots that are nearest to a position, in units of the distance of knots, and
/// their weights.
#[inline]
pub(super) fn stencil(position: f64, knots: usize) -> (usize, [f64; STENCIL]) {
    let last = knots - STENCIL;
    let first = (position.floor().max(2.0) as usize - 2).min(last);
    let t = position - first as f64;
    // prod_{i != j} (t - i) / (j - i), with the denominators (-1)^(5-j) j! (5-j)!.
    const DENOMINATORS: [f64; STENCIL] = [-120.0, 24.0, -12.0, 12.0, -24.0, 120.0];
    let mut before = [1.0; STENCIL];
    for j in 1..STENCIL {
        before[j] = before[j - 1] * (t - (j - 1) as f64);
    }
    let mut after = 1.0;
    let mut weights = [0.0; STENCIL];
    for j in (0..STENCIL).rev() {
        weights[j] = before[j] * after / DENOMINATORS[j];
        after *= t - j as f64;
    }
    (first, weights)
}
