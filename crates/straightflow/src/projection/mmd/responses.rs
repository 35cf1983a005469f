//! The weights of samples for infinitely small moves, tabulated in the natural parameter and in the
//! sample.

use super::cross::MmdLaw;
use super::gain::{GainTable, Piece};
use super::stencil::{STENCIL, stencil};
use crate::kernel::{Bandwidth, KernelFamily};

/// The distance of knots in the sample, in bandwidths.
const STEP: f64 = 0.1;
/// The samples of the table, in bandwidths from the mean.
const FROM: f64 = -6.0;
const KNOTS: usize = 151;

/// `c(z) / E c` of every law of a family under a Gaussian kernel, interpolated in the natural parameter
/// and in the distance of the sample from the mean in bandwidths, to 2e-6 of its largest value.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    /// For each piece of the gains, one row of knots for each of its knots.
    pieces: Vec<Vec<[f64; KNOTS]>>,
}

impl Responses {
    /// `None` for kernels that are not Gaussian, or that are narrower than the law or than the distance
    /// of integers: there a weight is no smooth function of the mean.
    pub fn new(table: &GainTable) -> Option<Self> {
        let wide = matches!(table.bandwidth, Bandwidth::Deviations { factor, floor }
            if factor >= 1.0 && floor >= 1.0);
        if table.family != KernelFamily::Rbf || !wide {
            return None;
        }
        let row = |natural: f64| {
            let law = table.law(natural);
            let bandwidth = table.bandwidth.resolve(&law);
            let kernel = table.family.at(bandwidth).ok()?;
            let prepared = MmdLaw::new(&law, kernel.as_ref()).ok()?;
            let gain = table.at(natural).linear;
            let knot = |j: usize| {
                let distance = FROM + STEP * j as f64;
                prepared.c(law.mean() + distance * bandwidth) / gain
            };
            Some(std::array::from_fn(knot))
        };
        let rows = |piece: &Piece| piece.knots().map(row).collect();
        let pieces = table.pieces.iter().map(rows).collect::<Option<_>>()?;
        Some(Self { pieces })
    }

    /// The weights of the samples of one law, if its natural parameter is in the table.
    pub fn of_law(&self, table: &GainTable, natural: f64) -> Option<LawResponses<'_>> {
        let (index, position) = table.place(natural)?;
        let rows = &self.pieces[index];
        let (first, weights) = stencil(position, rows.len());
        let law = table.law(natural);
        Some(LawResponses {
            rows: rows[first..]
                .first_chunk()
                .expect("as many knots as a stencil has"),
            weights,
            mean: law.mean(),
            scale: 1.0 / (STEP * table.bandwidth.resolve(&law)),
        })
    }
}

/// `c(z) / E c` of one law.
#[derive(Clone, Copy, Debug)]
pub struct LawResponses<'a> {
    rows: &'a [[f64; KNOTS]; STENCIL],
    weights: [f64; STENCIL],
    mean: f64,
    /// Knots per unit of the sample.
    scale: f64,
}

impl LawResponses<'_> {
    /// The weight of a sample, if it is in the table.
    #[inline]
    pub fn at(&self, z: f64) -> Option<f64> {
        let position = (z - self.mean) * self.scale - FROM / STEP;
        if !(0.0..=(KNOTS - 1) as f64).contains(&position) {
            return None;
        }
        let (first, columns) = stencil(position, KNOTS);
        let mut sum = 0.0;
        for (row, weight) in self.rows.iter().zip(self.weights) {
            let knots: &[f64; STENCIL] = row[first..].first_chunk().expect("a stencil of knots");
            let mut value = 0.0;
            for (knot, column) in knots.iter().zip(columns) {
                value += knot * column;
            }
            sum += weight * value;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::CountLaw;

    /// The samples that a law gives, and some that it never would.
    #[test]
    fn weights_agree_with_sums() {
        let families = [
            CountLaw::Poisson { rate: 1.0 },
            CountLaw::NegativeBinomial {
                dispersion: 0.7,
                mean: 1.0,
            },
            CountLaw::Binomial {
                trials: 12,
                logit: 0.0,
            },
        ];
        let rules = [3.0, 1.0].map(|factor| Bandwidth::Deviations { factor, floor: 1.0 });
        for (shape, bandwidth) in families
            .iter()
            .flat_map(|shape| rules.map(|rule| (shape, rule)))
        {
            let table = GainTable::new(shape, &KernelFamily::Rbf, bandwidth).unwrap();
            let responses = Responses::new(&table).unwrap();
            let (mut worst, mut seen) = (0.0f64, 0);
            for step in 0..400 {
                let natural = -13.7 + 0.0687 * f64::from(step);
                let law = table.law(natural);
                let kernel = KernelFamily::Rbf.at(bandwidth.resolve(&law)).unwrap();
                let exact = MmdLaw::new(&law, kernel.as_ref()).unwrap();
                let gain = exact.self_terms().gain;
                let Some(own) = responses.of_law(&table, natural) else {
                    continue;
                };
                let spread = law.variance().sqrt();
                for place in -8..=16 {
                    let z = (law.mean() + 0.5 * f64::from(place) * spread.max(0.5)).round();
                    if z < 0.0 || law.maximum().is_some_and(|most| z > most as f64) {
                        continue;
                    }
                    let Some(got) = own.at(z) else { continue };
                    let want = exact.c(z) / gain;
                    worst = worst.max((got - want).abs() / want.abs().max(1.0));
                    seen += 1;
                }
            }
            assert!(seen > 1000, "{shape:?}, {bandwidth}: {seen}");
            assert!(worst < 2e-6, "{shape:?}, {bandwidth}: {worst:e}");
        }
    }

    #[test]
    fn narrow_kernels_and_others_are_not_tabulated() {
        let shape = CountLaw::Poisson { rate: 1.0 };
        for (family, bandwidth) in [
            (KernelFamily::Rbf, Bandwidth::Fixed(2.0)),
            (KernelFamily::Laplace, Bandwidth::deviations(3.0).unwrap()),
            (KernelFamily::Rbf, Bandwidth::deviations(0.5).unwrap()),
        ] {
            let table = GainTable::new(&shape, &family, bandwidth).unwrap();
            assert!(Responses::new(&table).is_none());
        }
    }
}
