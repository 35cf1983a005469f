//! The gain of the gradient, tabulated in the natural parameter.

use std::sync::OnceLock;

use super::fourier::SelfTerms;
use super::responses::{LawResponses, Responses};
use super::stencil::{STENCIL, stencil};
use crate::distribution::CountLaw;
use crate::kernel::{Bandwidth, KernelFamily};
use crate::projection::{ProjectionError, check_law};

/// What the gradient of the discrepancy has to be divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// `E c(Z)`: dividing by `2 eps E c` makes the gradient of linear functions exact as
    /// `eps -> 0`.
    pub linear: f64,
    /// `M`, half of the curvature: dividing by `2 eps M` gives the Newton step of the projection.
    pub projection: f64,
}

/// `E c` and `M` for every law of a family, interpolated in the natural parameter (the logarithm
/// of the mean, or the logit of a binomial law).
///
/// The table covers means from 1e-6 to 1e6 (logits from -14 to 14) with a relative error below
/// 1e-6. Outside of it the gains are computed directly, which takes a few microseconds. Building it
/// takes milliseconds for Gaussian, Laplace and energy kernels and a fraction of a second for a
/// rational quadratic kernel of exponent 1, more for smaller exponents.
///
/// ```
/// use straightflow::distribution::CountLaw;
/// use straightflow::kernel::{Bandwidth, KernelFamily};
/// use straightflow::projection::GainTable;
///
/// let shape = CountLaw::Poisson { rate: 1.0 };
/// let table = GainTable::new(&shape, &KernelFamily::Rbf, Bandwidth::Fixed(1.0))?;
/// let gains = table.at(5.0_f64.ln());
/// assert!((gains.linear / 2.758115368039e-2 - 1.0).abs() < 1e-6);
/// # Ok::<(), straightflow::projection::ProjectionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GainTable {
    shape: CountLaw,
    pub(super) family: KernelFamily,
    pub(super) bandwidth: Bandwidth,
    pub(super) pieces: Vec<Piece>,
    responses: OnceLock<Option<Responses>>,
}

/// Equally spaced knots; the table is cut where the bandwidth leaves its floor.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    start: f64,
    step: f64,
    /// `ln E c` and `ln M`.
    logarithms: Vec<[f64; 2]>,
}

/// The distance of knots in the natural parameter.
const STEP: f64 = 0.07;

impl GainTable {
    /// Tabulates the gains for the family of a law (its mean is ignored).
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Law`] and [`ProjectionError::PointMass`] for an unusable shape,
    /// [`ProjectionError::Kernel`] for an unusable kernel or bandwidth.
    pub fn new(
        shape: &CountLaw,
        family: &KernelFamily,
        bandwidth: Bandwidth,
    ) -> Result<Self, ProjectionError> {
        check_law(shape)?;
        shape.weight().ok_or(ProjectionError::PointMass)?;
        let mut table = Self {
            shape: *shape,
            family: family.clone(),
            bandwidth,
            pieces: Vec::new(),
            responses: OnceLock::new(),
        };
        let (first, last) = match shape {
            CountLaw::Binomial { .. } => (-14.0, 14.0),
            CountLaw::Poisson { .. } | CountLaw::NegativeBinomial { .. } => {
                // A knot more on both sides: the ends themselves may be rounded.
                (1e-6_f64.ln() - STEP, 1e6_f64.ln() + STEP)
            }
        };
        let mut cuts = vec![first];
        let inside = |cut: &f64| *cut > first && *cut < last;
        cuts.extend(table.floor_cuts().into_iter().filter(inside));
        cuts.push(last);
        for pair in cuts.windows(2) {
            let piece = table.piece(pair[0], pair[1])?;
            table.pieces.push(piece);
        }
        Ok(table)
    }

    /// The gains at a natural parameter: the logit of a binomial law, the logarithm of the mean of
    /// the others.
    pub fn at(&self, natural: f64) -> Gains {
        let Some((index, position)) = self.place(natural) else {
            return self.outside(natural);
        };
        let [linear, projection] = self.pieces[index].interpolate(position);
        Gains {
            linear: linear.exp(),
            projection: projection.exp(),
        }
    }

    /// The law of the family with a natural parameter.
    pub fn law(&self, natural: f64) -> CountLaw {
        match self.shape {
            CountLaw::Binomial { trials, .. } => CountLaw::Binomial {
                trials,
                logit: natural,
            },
            shape => shape.with_mean(natural.exp()),
        }
    }

    /// The piece that a natural parameter is in, and where in it, in units of the distance of its knots.
    pub(super) fn place(&self, natural: f64) -> Option<(usize, f64)> {
        let index = self
            .pieces
            .iter()
            .position(|piece| natural <= piece.end())?;
        let piece = &self.pieces[index];
        (natural >= piece.start).then(|| (index, (natural - piece.start) / piece.step))
    }

    /// The weights of samples at a natural parameter, each relative to their mean; `None` beyond what
    /// is tabulated. The first call fills the table, which takes some ten milliseconds.
    pub(crate) fn responses(&self, natural: f64) -> Option<LawResponses<'_>> {
        let responses = self.responses.get_or_init(|| Responses::new(self));
        responses.as_ref()?.of_law(self, natural)
    }

    /// Beyond the table. Natural parameters are clamped to where the mean is a finite positive
    /// number.
    fn outside(&self, natural: f64) -> Gains {
        let natural = natural.clamp(-700.0, 700.0);
        self.exact(natural).unwrap_or(Gains {
            linear: f64::NAN,
            projection: f64::NAN,
        })
    }

    fn exact(&self, natural: f64) -> Result<Gains, ProjectionError> {
        let law = self.law(natural);
        let kernel = self.family.at(self.bandwidth.resolve(&law))?;
        let terms = SelfTerms::new(&law, kernel.as_ref());
        Ok(Gains {
            linear: terms.gain,
            projection: terms.curvature,
        })
    }

    /// Where `factor sd = floor`, in increasing order: the bandwidth has a corner there.
    fn floor_cuts(&self) -> Vec<f64> {
        let Bandwidth::Deviations { factor, floor } = self.bandwidth else {
            return Vec::new();
        };
        let variance = (floor / factor).powi(2);
        match self.shape {
            CountLaw::Poisson { .. } => vec![variance.ln()],
            // m + m^2 / r = v
            CountLaw::NegativeBinomial { dispersion, .. } => {
                let root = (1.0 + 4.0 * variance / dispersion).sqrt();
                vec![(2.0 * variance / (1.0 + root)).ln()]
            }
            // n p (1 - p) = n / (4 cosh^2(logit / 2)) = v
            CountLaw::Binomial { trials, .. } => {
                let cosh = (0.25 * f64::from(trials) / variance).sqrt();
                if cosh <= 1.0 {
                    return Vec::new();
                }
                let logit = 2.0 * cosh.acosh();
                vec![-logit, logit]
            }
        }
    }

    fn piece(&self, start: f64, end: f64) -> Result<Piece, ProjectionError> {
        let intervals = (((end - start) / STEP).ceil() as usize).max(STENCIL - 1);
        let step = (end - start) / intervals as f64;
        let mut logarithms = Vec::with_capacity(intervals + 1);
        for j in 0..=intervals {
            let gains = self.exact(start + step * j as f64)?;
            logarithms.push([gains.linear.ln(), gains.projection.ln()]);
        }
        Ok(Piece {
            start,
            step,
            logarithms,
        })
    }
}

impl Piece {
    fn end(&self) -> f64 {
        self.start + self.step * (self.logarithms.len() - 1) as f64
    }

    /// The knots, in the natural parameter.
    pub(super) fn knots(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.logarithms.len()).map(|j| self.start + self.step * j as f64)
    }

    /// Lagrange interpolation through the six nearest knots.
    fn interpolate(&self, position: f64) -> [f64; 2] {
        let (first, weights) = stencil(position, self.logarithms.len());
        let mut values = [0.0; 2];
        // From the last to the first, as the weights are made.
        for (knot, weight) in self.logarithms[first..]
            .iter()
            .zip(weights)
            .take(STENCIL)
            .rev()
        {
            values[0] += weight * knot[0];
            values[1] += weight * knot[1];
        }
        values
    }
}
