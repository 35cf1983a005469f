//! The exact gradient as an estimator.

use crate::distribution::{FamilyKind, Law};
use crate::error::{Error, Result};
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, NoiseSource, NoiseSpec, Outcome, Pass, Price, Stacked};
use crate::exact::Exact;

method! {
    /// The expectation summed over all states: no noise, no bias, no variance.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `Σ_z f(z) ∇q(z)` over the product of the coordinates' supports.
    /// * **Requires** the values of the cost.
    /// * **Bias**: none; infinite supports are cut as [`Exact`] says.
    ///
    /// The `values` and `samples` of an estimate are those of the states, and the surrogate's value
    /// is the expectation itself.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 3], &Device::flex()))?;
    /// let estimate = Enumerate::default().estimate(Key::new(1), &q, |z| {
    ///     z.sum_dim(2).square()
    /// })?;
    /// assert_eq!(estimate.values.dims(), [8, 1]);
    /// assert!((estimate.surrogate.into_scalar::<f32>() - 3.0).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Enumerate {}

    options EnumerateConfig {
        /// The largest number of states; more are an error, not an approximation.
        limit: usize [1..] = Exact::default().limit,
        /// Infinite supports are cut where a tail has probability exp(-log-tail).
        log_tail: f64 [f64::MIN_POSITIVE..=700.0] = Exact::default().log_tail,
    }

    facts {
        id: "enumerate",
        name: "Enumeration",
        families: FamilyKind::ALL,
        bias: none,
        needs: [Value],
        price: "one f for each state of all d coordinates together",
        reference: "the definition of an expectation",
        layers: Own,
        draws: 1,
    }
}

impl Enumerate {
    fn oracle(&self) -> Exact {
        Exact {
            log_tail: self.config.log_tail,
            limit: self.config.limit,
        }
    }
}

impl Estimator for Enumerate {
    fn noise(&self, _law: &Law, _n: usize) -> Vec<NoiseSpec> {
        Vec::new()
    }

    /// A law with too many states has no price; [`accepts`](Estimator::accepts) refuses it.
    fn price(&self, law: &Law, _n: usize) -> Price {
        Price::new(self.oracle().count(law).unwrap_or(usize::MAX), 0)
    }

    fn accepts(&self, law: &Law) -> Result<()> {
        self.oracle().count(law).map(|_| ())
    }
}

impl Stacked for Enumerate {
    fn layers_outcome(
        &self,
        _noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<Outcome> {
        let mut pass = Pass::default();
        for _ in 0..objective.layers() {
            let law = objective.frozen_layer(&pass.z)?.constant();
            self.check(&law, 1)?;
            let below = pass.z.first().map_or(1, |z| z.dims()[0]);
            let states = self.oracle().count(&law)?;
            if states.saturating_mul(below) > self.config.limit {
                return Err(Error::TooManyStates {
                    states: states as f64 * below as f64,
                    limit: self.config.limit,
                });
            }
            let (z, _) = self.oracle().states(&law)?;
            let [states, rows, d, k] = z.dims();
            let batch = rows / below;
            // Each state of the layers below meets each of this one.
            for z in &mut pass.z {
                *z = z.clone().repeat_dim(0, states);
            }
            pass.z.push(z.reshape([states * below, batch, d, k]));
        }
        for layer in 0..objective.layers() {
            pass.laws.push(objective.layer(&pass.z[..layer])?);
        }
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        let probability = pass.log_prob().exp();
        let expectation = (probability * cost.clone()).sum_dim(0);
        Ok(pass.with_surrogate(cost, expectation.mean()))
    }
}
