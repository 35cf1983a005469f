//! Discrepancies of tensors: one number for each batch element, on the tape of the parameters.

use std::sync::Arc;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::categorical::{OneHotMmd, softmax, through_softmax};
use super::{Discrepancy, MeanDifference, Mmd, ProjectionError, Wasserstein};
use crate::distribution::{Canonical as _, CountLaw, Distribution, Family};
use crate::error::{Error, Result};
use crate::gradient::with_gradient;
use crate::kernel::{Bandwidth, KernelFamily};
use crate::ops::{from_host, to_host};

/// Which discrepancy, for laws of any mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// The squared difference of the means.
    Mean,
    /// The squared maximum mean discrepancy of a kernel.
    Mmd {
        /// The kernel.
        kernel: KernelFamily,
        /// Its bandwidth, resolved for each law and then held fixed.
        bandwidth: Bandwidth,
    },
    /// The exact squared Wasserstein-2 distance.
    Wasserstein,
}

impl Measure {
    /// The discrepancy for laws near a given one.
    ///
    /// # Errors
    ///
    /// If the kernel refuses its bandwidth.
    pub fn at(&self, law: &CountLaw) -> Result<Box<dyn Discrepancy>, ProjectionError> {
        Ok(match self {
            Self::Mean => Box::new(MeanDifference),
            Self::Wasserstein => Box::new(Wasserstein),
            Self::Mmd { kernel, bandwidth } => {
                Box::new(Mmd::new(Arc::from(kernel.at(bandwidth.resolve(law))?)))
            }
        })
    }

    /// The discrepancy between each batch element of `q` and its samples `[n, batch, d]`, summed
    /// over the coordinates: `[batch]`, on the tape of the parameters of `q`.
    ///
    /// The samples are constants and need not be integers. Ordered families use the one-dimensional
    /// discrepancies, categorical ones the mean or the Gaussian kernel of one-hot vectors. For the
    /// Wasserstein distance of factorised laws the sum is a theorem; for the maximum mean
    /// discrepancy it is our choice.
    ///
    /// # Errors
    ///
    /// If a parameter or a sample is not finite, the samples have another shape, or the measure is
    /// not defined for the family.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    /// use straightflow::projection::Measure;
    ///
    /// // Fits a rate to counts, without a likelihood.
    /// let device = Device::flex().autodiff();
    /// let log_rate = Tensor::<2>::zeros([1, 1], &device).require_grad();
    /// let q = Poisson::from_log_rates(log_rate.clone())?;
    /// let counts = Tensor::<3>::from_floats([[[2.0]], [[3.0]], [[4.0]]], &device);
    /// let distance = Measure::Mean.between(&q, counts)?;
    /// let gradient = log_rate.grad(&distance.sum().backward()).unwrap();
    /// assert_eq!(gradient.into_scalar::<f32>(), -4.0); // 2 (1 - 3) times the rate
    /// # Ok::<(), Error>(())
    /// ```
    pub fn between<D: Distribution>(&self, q: &D, samples: D::Samples) -> Result<Tensor<1>> {
        let law = q.law();
        law.validate()?;
        let [batch, d, k] = law.dims();
        let (element, got) = (D::element(law), samples.sizes());
        let expected = [&[got[0], batch], element.as_slice()].concat();
        let samples = match samples.into_canonical(&element, [d, k]) {
            Some(samples) if expected == got => samples,
            _ => return Err(Error::SampleShape { expected, got }),
        };
        let samples = to_host(samples);
        let naturals = to_host(law.natural());
        // One variable of k numbers after the other, in row-major order of [batch, d].
        let each: Vec<(f64, Vec<f64>)> = (0..batch * d)
            .into_par_iter()
            .map(|variable| {
                let draws = samples.chunks(batch * d * k);
                let draws = draws.map(|draw| draw[variable * k..(variable + 1) * k].to_vec());
                let natural = &naturals[variable * k..(variable + 1) * k];
                self.variable(law.family(), natural, &draws.collect::<Vec<_>>())
            })
            .collect::<Result<_, _>>()?;
        let values = each.iter().map(|(value, _)| *value).collect();
        let slopes = each.into_iter().flat_map(|(_, slope)| slope).collect();
        let values: Tensor<3> = from_host(values, [batch, d, 1], &law.natural());
        let slopes: Tensor<3> = from_host(slopes, [batch, d, k], &law.natural());
        let slope = move |_, _, grad: Tensor<3>| slopes.clone() * grad;
        let values = with_gradient(law.natural(), values, slope);
        Ok(values.sum_dim(1).reshape([batch]))
    }

    /// The value and the gradient with respect to the natural parameters of one variable.
    fn variable(
        &self,
        family: Family,
        natural: &[f64],
        draws: &[Vec<f64>],
    ) -> Result<(f64, Vec<f64>)> {
        let Some(law) = family.count_law(natural[0]) else {
            return match family.is_one_hot() {
                true => self.one_hot(natural, draws),
                false => Err(Error::Unordered {
                    family: family.kind(),
                }),
            };
        };
        let draws: Vec<f64> = draws.iter().map(|draw| draw[0]).collect();
        let discrepancy = self.at(&law)?;
        let value = discrepancy.value(&law, &draws)?;
        let slope = discrepancy.mean_gradient(&law, &draws)? * law.chain_factor();
        Ok((value, vec![slope]))
    }

    fn one_hot(&self, logits: &[f64], draws: &[Vec<f64>]) -> Result<(f64, Vec<f64>)> {
        match self {
            Self::Mean => {
                let p = softmax(logits)?;
                let count = draws.len() as f64;
                let mean = |i: usize| draws.iter().map(|draw| draw[i]).sum::<f64>() / count;
                let gap: Vec<f64> = p.iter().enumerate().map(|(i, p)| p - mean(i)).collect();
                let by_p: Vec<f64> = gap.iter().map(|gap| 2.0 * gap).collect();
                let value = gap.iter().map(|gap| gap * gap).sum();
                Ok((value, through_softmax(&p, &by_p)))
            }
            Self::Mmd {
                kernel: KernelFamily::Rbf,
                bandwidth,
            } => {
                // A one-hot vector has no scale of its own: the floor of the rule counts.
                let point = CountLaw::Poisson { rate: 0.0 };
                let mmd = OneHotMmd::new(bandwidth.resolve(&point))?;
                Ok((
                    mmd.value(logits, draws)?,
                    mmd.logit_gradient(logits, draws)?,
                ))
            }
            Self::Mmd { .. } => Err(Error::Projection(ProjectionError::OneHotKernel)),
            Self::Wasserstein => Err(Error::Unordered {
                family: Family::Categorical.kind(),
            }),
        }
    }
}
