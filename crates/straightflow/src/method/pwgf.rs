//! The projected Wasserstein gradient flow estimator.

mod rule;
mod step;

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::distribution::{Family, FamilyKind, Law};
use crate::error::Result;
use crate::estimate::{Estimator, Noise, Pathwise, Preset, Reduction};
use crate::kernel::{Bandwidth, KernelFamily};
use crate::ops::custom_grad;
use crate::projection::{GainTable, Wasserstein};
use rule::PwgfRule;
pub use step::PwgfStep;

/// By which discrepancy the moved samples are projected onto the family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PwgfProjection {
    /// The squared maximum mean discrepancy, the paper's estimator.
    #[default]
    Mmd,
    /// The squared difference of the means: straight-through.
    Mean,
    /// The exact squared Wasserstein-2 distance.
    Wasserstein,
}

/// By what the gradient `G` of the discrepancy is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PwgfGain {
    /// By `2 eps E[c]`: exact on linear costs as `eps` tends to 0.
    #[default]
    Linear,
    /// By `2 eps M`: the Newton step of the projection.
    Projection,
    /// By nothing, as in the paper.
    Raw,
}

/// How one-hot vectors are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PwgfCategorical {
    /// A kernel of the distance between vectors.
    #[default]
    OneHot,
    /// The sum over the categories of one-dimensional discrepancies.
    PerCoordinate,
}

method! {
    /// Moves the samples along the negative gradient of the cost, projects the moved cloud onto the
    /// family, and takes the gradient of that projection.
    ///
    /// With samples `z_i`, moved samples `z̃_i = z_i - ε f'(z_i)` and the family's law `μ_m` of
    /// mean `m`, the squared maximum mean discrepancy `Δ²(μ_m, z̃)` has the gradient
    /// `d/dm E K(z, z') - (2/n) Σ_i r(z̃_i)` with `r(y) = d/dm E_{x ~ μ} K(x - y)`. The control
    /// variate subtracts the same at the `z_i`, which leaves `G = (2/n) Σ_i [r(z_i) - r(z̃_i)]`.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `G / (2 ε c̄)` by default, `c̄ = E c(z)`, in the limit of small steps:
    ///   `(1/n) Σ_i (c(z_i)/c̄) f'(z_i)`, `c = r'`: straight-through with a kernel weight.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: that of straight-through on quadratic costs, for every bandwidth
    ///   (`E c(z) z = m E c(z)`); elsewhere it depends on the bandwidth.
    ///
    /// # What the options do
    ///
    /// **Bernoulli and one-hot variables**: `c` is a constant, so with `step = limit` this *is*
    /// straight-through (times `c̄ / M` for `gain = projection`), whatever the kernel. It differs
    /// only for three or more ordered values.
    ///
    /// **Subsets**: the kernel of the distance tilts the law to the logits `θ + y / h²`, so
    /// that `r` has a closed form. The limit is no multiple of straight-through unless one item is
    /// in, or one is out, and no gain makes it exact on linear costs: `preset = paper`, the raw
    /// gradient, is what there is.
    ///
    /// **Step**. `limit` is linear and local. `relative(delta)` moves by `delta` bandwidths:
    /// `ε = δ h / rms(f')` with the root mean square over the draws and coordinates of one batch
    /// element; for a smooth kernel it tends to the limit linearly in `delta`; a gradient of zero
    /// gives zero. `fixed(eps)` multiplies the gradient of *one* draw's cost, so the rule has to
    /// know the factor that the loss puts on it: `estimate` averages over draws and batch; the
    /// drop-in is told by `reduction`. Large steps lose the signal, because kernels forget what is
    /// far away.
    ///
    /// **Bandwidth**. Wide kernels give straight-through; narrow ones a weight that is negative
    /// beyond about one standard deviation, with more variance. Below 0.35 a kernel no longer sees
    /// the neighbouring integer.
    ///
    /// **Gain**. `linear` is exact on linear costs; `projection` is the Newton step of the
    /// projection, .77 times straight-through for a Bernoulli variable with `h = 1`; `raw` leaves
    /// the factor `2 ε M` in, which acts as a learning rate, about .08 for a Poisson variable of
    /// rate 5 with `ε = 1` and `h` one standard deviation.
    ///
    /// **Dimensions**. In several coordinates the discrepancies are summed. For the Wasserstein
    /// distance of factorised laws that is a theorem; for the maximum mean discrepancy it is our
    /// choice.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let rates = Tensor::<2>::full([1, 3], 5.0, &device).require_grad();
    /// let z = Pwgf::default().sample(Key::new(1), &Poisson::from_rates(rates.clone())?, 64)?;
    /// let grads = (z.clone() * z).mean().backward();
    /// assert_eq!(rates.grad(&grads).unwrap().dims(), [1, 3]);
    ///
    /// let paper = estimator("pwgf:preset=paper,cv=off")?;
    /// assert_eq!(paper.spec().to_string(), "pwgf:preset=paper,cv=off");
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Pwgf { tables: Arc<Mutex<Tables>> }

    options PwgfConfig {
        /// The bandwidth of the kernel: a number, or `3sd` for three standard deviations, at least 1
        /// (`3sd>0.5`: at least 0.5).
        bandwidth: Bandwidth = Bandwidth::Deviations { factor: 3.0, floor: Bandwidth::FLOOR },
        /// How one-hot vectors are compared: `one-hot` or `per-coordinate`.
        categorical: PwgfCategorical = PwgfCategorical::OneHot,
        /// Subtract the gradient at the samples that did not move.
        cv: bool = true,
        /// What the gradient is divided by: `linear` (2 eps E c), `projection` (2 eps M) or `raw`
        /// (nothing).
        gain: PwgfGain = PwgfGain::Linear,
        /// `rbf`, `laplace`, `energy`, `rational-quadratic:1` or `mixture:0.5+1+2`.
        kernel: KernelFamily = KernelFamily::Rbf,
        /// `mmd`, `mean` or `wasserstein`.
        projection: PwgfProjection = PwgfProjection::Mmd,
        /// How the loss after the drop-in is reduced, for a fixed step: `mean` or `sum`.
        reduction: Reduction = Reduction::Mean,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The step of the flow: `limit` (infinitely small), `relative(0.05)` (in bandwidths) or `fixed(1)`.
        step: PwgfStep = PwgfStep::Limit,
    }

    facts {
        id: "pwgf",
        name: "Projected Wasserstein gradient flow",
        families: &[
            FamilyKind::Bernoulli,
            FamilyKind::Categorical,
            FamilyKind::Poisson,
            FamilyKind::Binomial,
            FamilyKind::NegativeBinomial,
            FamilyKind::Geometric,
        ],
        also: &[FamilyKind::Subset],
        bias: exact on "linear f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Cheng et al. 2019, arXiv 1910.02176",
        layers: Tape,
        presets: &[Preset {
            name: "paper",
            about: "our reading of the paper, which states neither step nor bandwidth: the raw \
                    gradient with the control variate of its section 2.1",
            options: &[("bandwidth", "1sd"), ("gain", "raw"), ("step", "fixed(1)")],
        }],
        check: PwgfConfig::check,
    }
}

/// The tables of gains that were made so far; clones share them.
type Tables = Vec<(Family, Arc<GainTable>)>;

impl PwgfConfig {
    /// Looks for options that do not go together.
    fn check(&self) -> Result<()> {
        let step = self.step.check();
        step.map_err(|message| ENTRY.invalid(message))?;
        let refuse = |message: &str| Err(ENTRY.invalid(message));
        match (self.step, self.gain, self.cv, self.projection) {
            (PwgfStep::Limit | PwgfStep::Relative(_), PwgfGain::Raw, ..) => {
                refuse("`gain=raw` needs a fixed step: the raw gradient shrinks with the step")
            }
            (PwgfStep::Limit, _, false, _) => {
                refuse("`cv=off` needs a step of finite size: its noise grows as 1 / eps")
            }
            (
                PwgfStep::Relative(_) | PwgfStep::Fixed(_),
                PwgfGain::Linear | PwgfGain::Projection,
                _,
                PwgfProjection::Mmd,
            ) if self.kernel.has_kink() => refuse(
                "a kernel with a kink sees a sample leave its integer in either direction alike, \
                     so its finite steps do not tend to a gradient: use `step=limit`, or \
                     `gain=raw`",
            ),
            (_, PwgfGain::Projection, _, PwgfProjection::Wasserstein) => {
                refuse("the Wasserstein projection stalls, it has no `gain=projection`")
            }
            _ => Ok(()),
        }
    }

    /// Whether it is straight-through by its projection.
    fn is_mean(&self) -> bool {
        self.projection == PwgfProjection::Mean && self.cv && self.gain != PwgfGain::Raw
    }

    /// Whether it is the difference of two responses of a Gaussian kernel.
    fn is_raw(&self) -> bool {
        let gaussian = self.projection == PwgfProjection::Mmd && self.kernel == KernelFamily::Rbf;
        gaussian && self.cv && self.gain == PwgfGain::Raw
    }
}

impl Pwgf {
    /// The table of gains of an ordered family, made at the first use.
    fn table(&self, family: Family) -> Option<Arc<GainTable>> {
        // A table is pushed whole, so a panic elsewhere leaves nothing half done.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = tables.iter().find(|(known, _)| *known == family) {
            return Some(table.clone());
        }
        let shape = family.count_law(0.0)?;
        let table = GainTable::new(&shape, &self.config.kernel, self.config.bandwidth).ok()?;
        let table = Arc::new(table);
        tables.push((family, table.clone()));
        Some(table)
    }
}

impl Estimator for Pwgf {
    /// The exact coupling visits every value of a law's window. Of subsets there is the raw gradient
    /// alone: no factor makes it exact on linear costs.
    fn accepts(&self, law: &Law) -> Result<()> {
        if law.family().has_swaps() && !self.config.is_mean() && !self.config.is_raw() {
            return Err(ENTRY.invalid(
                "subsets take `gain=raw` with a fixed step, `kernel=rbf`, `projection=mmd` and \
                 `cv=on`: no gain makes the flow exact on linear costs; or `projection=mean`, which \
                 is straight-through",
            ));
        }
        // The laws of all variables are a copy to the host, and no other projection needs it.
        if self.config.projection != PwgfProjection::Wasserstein {
            return Ok(());
        }
        let laws = law.count_laws().unwrap_or_default();
        Ok(laws.iter().try_for_each(Wasserstein::accepts)?)
    }
}

impl Pathwise for Pwgf {
    fn attach(&self, noise: &Noise, law: &Law, reduction: Reduction) -> Tensor<4> {
        let z = noise.get(0);
        let rule = PwgfRule::new(&self.config, law, &z, reduction, |family| {
            self.table(family)
        });
        custom_grad(law.natural(), z, Arc::new(rule))
    }

    fn loss_reduction(&self) -> Reduction {
        self.config.reduction
    }
}
