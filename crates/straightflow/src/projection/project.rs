//! The argmin of a discrepancy over the means of a family.

use super::wasserstein::cells;
use super::{Atoms, Discrepancy, Mmd, ProjectionError, Wasserstein, check_law, largest_mean};
use crate::distribution::CountLaw;

/// The mean of the law nearest to moved samples, among the laws of the same shape.
///
/// The mean of `shape` is where a search starts.
///
/// ```
/// use std::sync::Arc;
///
/// use straightflow::distribution::CountLaw;
/// use straightflow::kernel::Rbf;
/// use straightflow::projection::{Discrepancy, Mmd, project};
///
/// let mmd = Mmd::new(Arc::new(Rbf::new(2.0)?));
/// let samples = [3.2, 4.9, 5.5, 8.1];
/// let rate = project(&CountLaw::Poisson { rate: 5.0 }, &samples, &mmd)?;
/// let gradient = mmd.mean_gradient(&CountLaw::Poisson { rate }, &samples)?;
/// assert!(gradient.abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ProjectionError::NoSamples`], [`ProjectionError::Sample`], [`ProjectionError::Law`] and
/// [`ProjectionError::PointMass`] for unusable arguments.
pub fn project(
    shape: &CountLaw,
    moved: &[f64],
    discrepancy: &dyn Discrepancy,
) -> Result<f64, ProjectionError> {
    discrepancy.project_to(shape, &Atoms::empirical(moved)?)
}

/// The local minimum of the squared discrepancy below the mean of `shape` or of the samples,
/// whichever is better: Newton steps with the curvature `2 M`, kept inside a bracket of the root of
/// the gradient and replaced by bisection where they leave it.
pub(super) fn newton(mmd: &Mmd, shape: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
    check_law(shape)?;
    let largest = largest_mean(shape);
    let slope = |mean: f64| mmd.slope_and_curvature(&shape.with_mean(mean), atoms);
    let mut mean = shape.mean();
    let sample_mean = atoms.mean().clamp(0.0, largest);
    let value = |mean: f64| mmd.part_of_law(&shape.with_mean(mean), atoms);
    if value(sample_mean)? < value(mean)? {
        mean = sample_mean;
    }
    let (mut gradient, mut curvature) = slope(mean)?;
    // Walk downhill until the gradient changes sign or the family ends.
    let direction = -gradient.signum();
    let edge = if direction < 0.0 { 0.0 } else { largest };
    let mut behind = mean;
    let mut reach = (gradient / (2.0 * curvature)).abs().max(1e-9);
    let ahead = loop {
        if gradient == 0.0 || mean == edge {
            return Ok(mean);
        }
        let next = if direction < 0.0 {
            (mean - reach).max(edge)
        } else {
            (mean + reach).min(edge)
        };
        let (there, bend) = slope(next)?;
        if there * gradient <= 0.0 {
            break next;
        }
        behind = next;
        (mean, gradient, curvature) = (next, there, bend);
        reach *= 2.0;
    };
    let (mut lo, mut hi) = (behind.min(ahead), behind.max(ahead));
    for _ in 0..200 {
        let mut next = mean - gradient / (2.0 * curvature);
        if !(next > lo && next < hi) {
            next = 0.5 * (lo + hi);
        }
        let moved = (next - mean).abs();
        mean = next;
        (gradient, curvature) = slope(mean)?;
        if gradient < 0.0 {
            lo = mean;
        } else {
            hi = mean;
        }
        let resolution = 4.0 * f64::EPSILON * mean.abs();
        if gradient == 0.0 || moved <= resolution || hi - lo <= resolution {
            break;
        }
    }
    Ok(mean)
}

/// The global argmin of `W2^2` over the means.
///
/// `W2^2` is a sum over `x` of convex, piecewise linear functions of `F_m(x)`, whose corners are
/// the cumulative weights of the atoms. A minimum is thus either a breakpoint, where `F_m(x)`
/// equals one of them, or a root of the gradient between two breakpoints. Since `|m - mean| <=
/// W2(m)`, no minimum is further from the mean of the atoms than the distance there.
pub(super) fn breakpoint_search(
    wasserstein: &Wasserstein,
    shape: &CountLaw,
    atoms: &Atoms,
) -> Result<f64, ProjectionError> {
    check_law(shape)?;
    shape.weight().ok_or(ProjectionError::PointMass)?;
    let largest = largest_mean(shape);
    let value = |mean: f64| wasserstein.value_to(&shape.with_mean(mean), atoms);
    let slope = |mean: f64| wasserstein.mean_gradient_to(&shape.with_mean(mean), atoms);
    let centre = atoms.mean();
    let mut best = (
        value(centre.clamp(0.0, largest))?,
        centre.clamp(0.0, largest),
    );
    let start = (value(shape.mean())?, shape.mean());
    if start.0 < best.0 {
        best = start;
    }
    let radius = best.0.sqrt();
    let lo = (centre - radius).clamp(0.0, largest);
    let hi = (centre + radius).clamp(0.0, largest);
    let points = breakpoints(shape, atoms, lo, hi)?;
    let mut keep = |mean: f64| -> Result<(), ProjectionError> {
        let candidate = (value(mean)?, mean);
        // A tie within rounding goes to the first, and so to the start.
        if candidate.0 < best.0 - 1e-14 * best.0.abs() {
            best = candidate;
        }
        Ok(())
    };
    for pair in points.windows(2) {
        keep(pair[0])?;
        keep(pair[1])?;
        // The gradient is continuous inside; a small step keeps clear of the corners.
        let (a, b) = (pair[0], pair[1]);
        let inset = 1e-9 * (b - a);
        let (left, right) = (a + inset, b - inset);
        let rises = slope(right)? > 0.0;
        if slope(left)? >= 0.0 || !rises || right <= left {
            continue;
        }
        keep(bisect(left, right, 1e-14, |mean| Ok(slope(mean)? > 0.0))?)?;
    }
    Ok(best.1)
}

/// The means between `lo` and `hi` at which a level of the law equals a level of the atoms, with
/// both ends, in increasing order.
fn breakpoints(
    shape: &CountLaw,
    atoms: &Atoms,
    lo: f64,
    hi: f64,
) -> Result<Vec<f64>, ProjectionError> {
    let mut points = vec![lo, hi];
    let (at_lo, at_hi) = (cells(&shape.with_mean(lo))?, cells(&shape.with_mean(hi))?);
    let level = |cells: &[super::wasserstein::Cell], x: f64| {
        let first = cells.first().map_or(0.0, |cell| cell.point);
        if x < first {
            return 0.0;
        }
        cells
            .get((x - first) as usize)
            .map_or(1.0, |cell| cell.level)
    };
    let first = at_lo.first().map_or(0.0, |cell| cell.point) as u64;
    let last = at_hi.last().map_or(0.0, |cell| cell.point) as u64;
    for x in first..=last {
        let x = x as f64;
        // F_m(x) falls as m grows.
        let (top, bottom) = (level(&at_lo, x), level(&at_hi, x));
        let inner = atoms.levels().iter().copied();
        for target in inner.filter(|&c| c < 1.0 && c > bottom && c < top) {
            let passed = |mean: f64| Ok(shape.with_mean(mean).cdf(x) <= target);
            points.push(bisect(lo, hi, 1e-15, passed)?);
        }
    }
    points.sort_unstable_by(f64::total_cmp);
    points.dedup();
    Ok(points)
}

/// Where a condition begins to hold between two positive numbers, up to a relative resolution.
fn bisect(
    mut lo: f64,
    mut hi: f64,
    resolution: f64,
    holds: impl Fn(f64) -> Result<bool, ProjectionError>,
) -> Result<f64, ProjectionError> {
    while hi - lo > resolution * hi {
        let middle = 0.5 * (lo + hi);
        if middle <= lo || middle >= hi {
            break;
        }
        match holds(middle)? {
            true => hi = middle,
            false => lo = middle,
        }
    }
    Ok(0.5 * (lo + hi))
}
