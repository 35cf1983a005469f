//! The backward pass of the projected flow.
//!
//! Everything is computed on the host in double precision: the sums over a law's window are short
//! but irregular, and the moves of a fixed step are often below the resolution of `f32`.
//!
//! For one coordinate, let `S = sum_i [r(z_i) - r(z_i - shift_i)]`, so that the gradient of the
//! discrepancy is `G = 2 S / n`. The incoming gradients `dz_i = factor * f'(z_i)` carry the loss's
//! factor, and the loss's gradient with respect to the mean is `n * factor` times that of `E f`.
//! Hence `G / (2 eps E c)` becomes `S / (E c * eps / factor)`, and raw `G` becomes `2 factor S`.

use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use rayon::prelude::*;

use super::{PwgfCategorical, PwgfConfig, PwgfGain, PwgfProjection, PwgfStep};
use crate::distribution::count::sigmoid;
use crate::distribution::{CountLaw, Family, Law};
use crate::estimator::Reduction;
use crate::kernel::Kernel;
use crate::ops::{Rule, from_host, to_host};
use crate::projection::{
    Discrepancy, GainTable, Gains, LawResponses, MmdLaw, SelfTerms, Wasserstein, categorical,
};

#[derive(Debug)]
pub(super) struct PwgfRule {
    config: PwgfConfig,
    family: Family,
    /// The factor that the loss puts on the cost of one draw and batch element.
    factor: f64,
    /// The gains by interpolation; without it they are computed for each coordinate.
    table: Option<Arc<GainTable>>,
}

impl PwgfRule {
    pub(super) fn new(
        config: &PwgfConfig,
        law: &Law,
        z: &Tensor<4>,
        reduction: Reduction,
        table: impl FnOnce(Family) -> Option<Arc<GainTable>>,
    ) -> Self {
        let [n, batch, ..] = z.dims();
        let family = law.family();
        // The table is good to 1e-6, which is as good as `f32` is, but not as `f64`.
        let tabulated = config.projection == PwgfProjection::Mmd
            && config.gain != PwgfGain::Raw
            && !family.is_binary()
            && law.natural().dtype() != DType::F64;
        Self {
            config: config.clone(),
            family,
            factor: reduction.factor(n, batch),
            table: if tabulated { table(family) } else { None },
        }
    }

    /// Whether every draw has the weight 1, so that the rule is straight-through.
    fn is_straight_through(&self) -> bool {
        match self.config.projection {
            PwgfProjection::Mean => self.config.is_mean(),
            PwgfProjection::Mmd => {
                self.config.step == PwgfStep::Limit
                    && self.config.gain == PwgfGain::Linear
                    && self.family.is_binary()
            }
            PwgfProjection::Wasserstein => false,
        }
    }
}

impl Rule for PwgfRule {
    fn backward(&self, natural: Tensor<3>, z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        let law = Law::unchecked(self.family, natural);
        if self.is_straight_through() {
            return law.chain(dz.sum_dim(0).squeeze_dim(0));
        }
        let [batch, d, k] = law.dims();
        let n = z.dims()[0];
        let (parameters, z, dz) = (to_host(law.natural()), to_host(z), to_host(dz));
        let size = d * k;
        let mut by_mean = vec![0.0; batch * size];
        by_mean
            .par_chunks_mut(size)
            .enumerate()
            .for_each(|(element, out)| {
                let draws = |x: &[f64]| -> Vec<f64> {
                    let row = |i: usize| &x[(i * batch + element) * size..][..size];
                    (0..n).flat_map(row).copied().collect()
                };
                let (z, dz) = (draws(&z), draws(&dz));
                let parameters = &parameters[element * size..][..size];
                let element = Element {
                    rule: self,
                    spread: root_mean_square(&dz),
                    z,
                    dz,
                    size,
                };
                for (variable, out) in out.chunks_mut(k).enumerate() {
                    element.variable(variable * k, &parameters[variable * k..][..k], out);
                }
            });
        let by_mean: Tensor<3> = from_host(by_mean, [batch, d, k], &law.natural());
        // The response of subsets is with respect to the logits already.
        match self.family.has_swaps() {
            true => by_mean,
            false => law.chain(by_mean),
        }
    }
}

/// Without overflow or underflow of the squares.
fn root_mean_square(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = x.iter().map(|x| (x / largest).powi(2)).sum();
    largest * (sum / x.len() as f64).sqrt()
}

/// The draws of one batch element, `[n, d k]`.
struct Element<'a> {
    rule: &'a PwgfRule,
    /// The root mean square of the incoming gradients.
    spread: f64,
    z: Vec<f64>,
    dz: Vec<f64>,
    size: usize,
}

impl Element<'_> {
    /// The gradient with respect to the means of one variable whose first coordinate is `start`.
    fn variable(&self, start: usize, natural: &[f64], out: &mut [f64]) {
        let config = &self.rule.config;
        // Without a gradient a relative step has no size, and with the control variate nothing is
        // left.
        let relative = matches!(config.step, PwgfStep::Relative(_));
        if self.spread == 0.0 && (config.cv || relative) {
            return out.fill(0.0);
        }
        if self.rule.family.has_swaps() {
            return self.subset(start, natural, out);
        }
        let one_hot = self.rule.family.is_one_hot();
        if one_hot
            && config.projection == PwgfProjection::Mmd
            && config.categorical == PwgfCategorical::OneHot
        {
            return self.one_hot(start, natural, out);
        }
        for (j, out) in out.iter_mut().enumerate() {
            let law = match self.rule.family.count_law(natural[j]) {
                Some(law) => law,
                // One category against the rest.
                None => CountLaw::Binomial {
                    trials: 1,
                    logit: logit_of_category(natural, j),
                },
            };
            *out = self.coordinate(&law, natural[j], start + j);
        }
    }

    fn column<'a>(&self, x: &'a [f64], coordinate: usize) -> impl Iterator<Item = f64> + 'a {
        x.iter().skip(coordinate).step_by(self.size).copied()
    }

    fn draws(&self) -> f64 {
        (self.z.len() / self.size) as f64
    }

    /// `eps / factor`: what an incoming gradient is multiplied by to get a shift. `None` for an
    /// infinitely small step.
    fn stride(&self, bandwidth: f64) -> Option<f64> {
        match self.rule.config.step {
            PwgfStep::Limit => None,
            PwgfStep::Relative(delta) => Some(delta * bandwidth / self.spread),
            PwgfStep::Fixed(eps) => Some(eps / self.rule.factor),
        }
    }

    /// From `S` to the gradient of the loss with respect to the mean.
    fn normalise(&self, sum: f64, stride: Option<f64>, gains: impl FnOnce() -> Gains) -> f64 {
        let divisor = match self.rule.config.gain {
            PwgfGain::Raw => return 2.0 * self.rule.factor * sum,
            PwgfGain::Linear => gains().linear,
            PwgfGain::Projection => gains().projection,
        };
        sum / divisor / stride.unwrap_or(1.0)
    }

    /// The gradient by the table of the weights, for infinitely small steps; `None` beyond it.
    fn tabulated(&self, natural: f64, j: usize) -> Option<f64> {
        let table = self.rule.table.as_ref()?;
        let responses: LawResponses = table.responses(natural)?;
        let mut sum = 0.0;
        for (z, dz) in self.column(&self.z, j).zip(self.column(&self.dz, j)) {
            sum += responses.at(z)? * dz;
        }
        Some(match self.rule.config.gain {
            PwgfGain::Linear => sum,
            PwgfGain::Projection | PwgfGain::Raw => {
                let gains = table.at(natural);
                self.normalise(sum * gains.linear, None, || gains)
            }
        })
    }

    fn coordinate(&self, law: &CountLaw, natural: f64, j: usize) -> f64 {
        let config = &self.rule.config;
        if config.step == PwgfStep::Limit
            && let Some(gradient) = self.tabulated(natural, j)
        {
            return gradient;
        }
        let bandwidth = config.bandwidth.resolve(law);
        let stride = self.stride(bandwidth);
        let pairs = || self.column(&self.z, j).zip(self.column(&self.dz, j));
        let unit = Gains {
            linear: 1.0,
            projection: 1.0,
        };
        match config.projection {
            PwgfProjection::Mean => {
                let sum: f64 = match stride {
                    None => self.column(&self.dz, j).sum(),
                    Some(stride) if config.cv => pairs().map(|(_, dz)| stride * dz).sum(),
                    Some(stride) => pairs().map(|(z, dz)| law.mean() - z + stride * dz).sum(),
                };
                self.normalise(sum, stride, || unit)
            }
            PwgfProjection::Wasserstein => {
                let z: Vec<f64> = self.column(&self.z, j).collect();
                let gradient = match stride {
                    None => {
                        let slopes: Vec<f64> = self.column(&self.dz, j).collect();
                        Wasserstein.limit_gradient(law, &z, &slopes)
                    }
                    Some(stride) => {
                        let moved: Vec<f64> = pairs().map(|(z, dz)| z - stride * dz).collect();
                        if config.cv {
                            Wasserstein.control_variate_gradient(law, &moved, &z)
                        } else {
                            Wasserstein.mean_gradient(law, &moved)
                        }
                    }
                };
                let sum = gradient.map_or(f64::NAN, |gradient| 0.5 * self.draws() * gradient);
                self.normalise(sum, stride, || unit)
            }
            PwgfProjection::Mmd => {
                let Ok(kernel) = config.kernel.at(bandwidth) else {
                    return f64::NAN;
                };
                let Ok(response) = Response::new(law, kernel.as_ref()) else {
                    return f64::NAN;
                };
                let sum: f64 = match stride {
                    None => pairs().map(|(z, dz)| response.c(z) * dz).sum(),
                    Some(stride) if config.cv => {
                        pairs().map(|(z, dz)| response.fall(z, stride * dz)).sum()
                    }
                    Some(stride) => {
                        let own = 0.5 * self.draws() * response.mean_slope();
                        own - pairs()
                            .map(|(z, dz)| response.r(z - stride * dz))
                            .sum::<f64>()
                    }
                };
                self.normalise(sum, stride, || match &self.rule.table {
                    Some(table) => table.at(natural),
                    None => response.gains(),
                })
            }
        }
    }

    /// Subsets compared by a Gaussian kernel of their distance, before any gain: the fall of the
    /// response from a draw to where it was moved, with respect to the logits.
    fn subset(&self, start: usize, logits: &[f64], out: &mut [f64]) {
        let k = logits.len();
        let point = CountLaw::Poisson { rate: 0.0 };
        let bandwidth = self.rule.config.bandwidth.resolve(&point);
        let stride = self.stride(bandwidth).unwrap_or(0.0);
        let family = self.rule.family;
        let mut sums = vec![0.0; k];
        for (z, dz) in self.z.chunks(self.size).zip(self.dz.chunks(self.size)) {
            let (z, dz) = (&z[start..start + k], &dz[start..start + k]);
            let moved: Vec<f64> = z.iter().zip(dz).map(|(z, dz)| z - stride * dz).collect();
            let here = family.kernel_response(logits, z, bandwidth);
            let there = family.kernel_response(logits, &moved, bandwidth);
            for (sum, (here, there)) in sums.iter_mut().zip(here.iter().zip(there)) {
                *sum += here - there;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = 2.0 * self.rule.factor * sum;
        }
    }

    /// One-hot vectors compared by the kernel of their distance: the gradient by `p_i` is `2 (u_i -
    /// ..)` with the witness `u_i = (1 - k) p_i - mean_n K(|e_i - y_n|)` up to a constant, which
    /// the softmax removes.
    fn one_hot(&self, start: usize, logits: &[f64], out: &mut [f64]) {
        let config = &self.rule.config;
        let k = logits.len();
        // A one-hot vector has no scale of its own; a bandwidth in standard deviations is at its
        // floor.
        let point = CountLaw::Poisson { rate: 0.0 };
        let bandwidth = config.bandwidth.resolve(&point);
        let Ok(kernel) = config.kernel.at(bandwidth) else {
            return out.fill(f64::NAN);
        };
        let corner = std::f64::consts::SQRT_2;
        let gains = || Gains {
            linear: -kernel.derivative(corner) / corner,
            projection: kernel.fall(0.0, corner),
        };
        let stride = self.stride(bandwidth);
        let rows = self.z.chunks(self.size).zip(self.dz.chunks(self.size));
        let mut sums = vec![0.0; k];
        for (z, dz) in rows {
            let (z, dz) = (&z[start..start + k], &dz[start..start + k]);
            for (i, sum) in sums.iter_mut().enumerate() {
                let from_corner = |j: usize| z[j] - f64::from(u8::from(i == j));
                let Some(stride) = stride else {
                    // K is flat at the corner itself; elsewhere its slope is towards the corner.
                    let along: f64 = (0..k).map(|j| from_corner(j) * dz[j]).sum();
                    *sum -= along * gains().linear;
                    continue;
                };
                // |e_i - y|^2 = |e_i - z|^2 + growth, without cancellation.
                let (mut square, mut growth) = (0.0, 0.0);
                for (j, dz) in dz.iter().enumerate() {
                    let shift = stride * dz;
                    square += from_corner(j) * from_corner(j);
                    growth += shift * (shift - 2.0 * from_corner(j));
                }
                let (near, far) = (square.sqrt(), (square + growth).max(0.0).sqrt());
                *sum += if !config.cv {
                    -kernel.value(far)
                } else if growth == 0.0 {
                    0.0
                } else {
                    kernel.fall(near, growth / (near + far))
                };
            }
        }
        if !config.cv {
            let Ok(p) = categorical::softmax(logits) else {
                return out.fill(f64::NAN);
            };
            for (sum, p) in sums.iter_mut().zip(p) {
                *sum += self.draws() * kernel.fall(0.0, corner) * p;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = self.normalise(sum, stride, gains);
        }
    }
}

/// `ln p_j - ln(1 - p_j)` of one category, without cancellation.
fn logit_of_category(logits: &[f64], j: usize) -> f64 {
    let others = || logits.iter().enumerate().filter(|(i, _)| *i != j);
    let largest = others().fold(f64::NEG_INFINITY, |m, (_, x)| m.max(*x));
    let sum: f64 = others().map(|(_, x)| (x - largest).exp()).sum();
    logits[j] - largest - sum.ln()
}

/// `r`, `c` and the gains of a law; in closed form for a single bit.
enum Response<'k> {
    Bit { p: f64, kernel: &'k dyn Kernel },
    Law(MmdLaw<'k>),
}

impl<'k> Response<'k> {
    fn new(
        law: &CountLaw,
        kernel: &'k dyn Kernel,
    ) -> Result<Self, crate::projection::ProjectionError> {
        match *law {
            CountLaw::Binomial { trials: 1, logit } => Ok(Self::Bit {
                p: sigmoid(logit),
                kernel,
            }),
            _ => MmdLaw::new(law, kernel).map(Self::Law),
        }
    }

    fn r(&self, y: f64) -> f64 {
        match self {
            // K(1 - y) - K(-y)
            Self::Bit { kernel, .. } => -kernel.fall(-y, 1.0),
            Self::Law(law) => law.r(y),
        }
    }

    fn c(&self, y: f64) -> f64 {
        match self {
            Self::Bit { kernel, .. } => kernel.derivative(-y) - kernel.derivative(1.0 - y),
            Self::Law(law) => law.c(y),
        }
    }

    fn fall(&self, y: f64, shift: f64) -> f64 {
        match self {
            Self::Bit { kernel, .. } => kernel.fall(1.0 - y, shift) - kernel.fall(-y, shift),
            Self::Law(law) => law.fall(y, shift),
        }
    }

    /// `d/dm E K(Z - Z')`.
    fn mean_slope(&self) -> f64 {
        match self {
            Self::Bit { p, kernel } => 2.0 * (2.0 * p - 1.0) * kernel.fall(0.0, 1.0),
            Self::Law(law) => law.self_terms().mean_slope(law.law()),
        }
    }

    fn gains(&self) -> Gains {
        match self {
            Self::Bit { kernel, .. } => Gains {
                linear: -kernel.derivative(1.0),
                projection: 2.0 * kernel.fall(0.0, 1.0),
            },
            Self::Law(law) => {
                let SelfTerms {
                    gain, curvature, ..
                } = law.self_terms();
                Gains {
                    linear: gain,
                    projection: curvature,
                }
            }
        }
    }
}
