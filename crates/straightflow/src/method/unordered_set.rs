//! The estimator from a set of different configurations.

use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::antithetic::along;
use crate::distribution::count::softplus;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, NoiseSpec, Outcome};
use crate::exact::Exact;
use crate::ops::{from_host, gradient_only, to_host};

method! {
    /// REINFORCE over a set of configurations drawn without replacement, no matter in which order.
    ///
    /// A configuration is one value of all variables of a batch element together. A set `S` of `n`
    /// different ones has the probability `P(S)` of drawing them one after the other without
    /// replacement, in any order. `P⁻ˢ` is the same for the law that is left when `s` cannot be drawn.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `Σ_{s ∈ S} p_s R(S, s) ∇log p_s (f_s - Σ_{t ∈ S} p_t R⁻ˢ(S, t) f_t)`, where
    ///   `R(S, s) = P⁻ˢ(S without s) / P(S)`, and `R⁻ˢ` is the same without `s`, with
    ///   `R⁻ˢ(S, s) = 1`.
    /// * **Requires** the values of the cost, and at least two draws, at most as many as there are
    ///   configurations. With all of them it is exact.
    /// * **Bias**: none.
    /// * **Price**: one evaluation for each configuration; their probabilities as a set take
    ///   `n 2ⁿ` operations, so that `samples` ends at 12.
    /// * **Note**: draws do not count alike. The surrogate's value is `Σ_s p_s R(S, s) f_s`,
    ///   which is unbiased, and so is the gradient of the cost's own parameters; the plain mean of
    ///   the estimate's `values` is neither. Sets are drawn by stochastic beam search (Kool, van
    ///   Hoof, Welling 2019, arXiv 1903.06059), variable by variable.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 2], &Device::flex()))?;
    /// let cost = |z: Tensor<3>| z.sum_dim(2).square();
    /// // Two bits have four configurations, and all four of them leave nothing to chance.
    /// let all = estimator("unordered-set:samples=4")?.gradient(Key::new(1), &q, cost)?;
    /// let exact = Exact::default().gradient(&q, cost)?;
    /// assert!((all - exact).abs().max().into_scalar::<f32>() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct UnorderedSet {}

    options UnorderedSetConfig {
        /// The number of different configurations n of one estimate.
        samples: usize [..=12] = 2,
    }

    facts {
        id: "unordered-set",
        name: "Unordered set",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: none,
        needs: [Value],
        price: [1, 0],
        reference: "Kool, van Hoof, Welling 2020, arXiv 2002.06043",
        layers: Layerwise,
        noise: Uniform,
        weighted: true,
        least: 2,
    }
}

impl Estimator for UnorderedSet {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let [batch, d, k] = law.dims();
        vec![NoiseSpec::uniform("uniform", [n, batch, d, k.max(2)])]
    }

    fn accepts(&self, law: &Law) -> Result<()> {
        let limit = self.config.samples - 1;
        let all = Exact {
            limit,
            ..Exact::default()
        };
        match all.count(law) {
            Ok(states) => Err(ENTRY.invalid(format!(
                "`samples` must be at most the number of configurations, {states}, got {}",
                self.config.samples
            ))),
            // There are enough of them.
            Err(crate::Error::TooManyStates { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let [n, batch, d, values_each] = noise.get(0).dims();
        let k = law.dims()[2];
        let sets = draw(noise, law);
        let z: Vec<f64> = (0..n)
            .flat_map(|s| sets.iter().flat_map(move |set| &set[s].values))
            .flat_map(|value| encode(*value, k, values_each))
            .collect();
        let z: Tensor<4> = from_host(z, [n, batch, d, k], &law.natural());
        let cost = objective.evaluate(z.clone(), law)?;
        let values = to_host(cost.clone());
        let mut shares = vec![0.0; n * batch];
        let mut scales = vec![0.0; n * batch];
        for (element, set) in sets.iter().enumerate() {
            let log_p: Vec<f64> = set.iter().map(|one| one.log_p).collect();
            let weights = Weights::new(&log_p);
            for s in 0..n {
                let of = |s: usize| s * batch + element;
                let baseline: f64 = (0..n).map(|t| weights.left[s][t] * values[of(t)]).sum();
                shares[of(s)] = weights.shares[s];
                scales[of(s)] = weights.shares[s] * (values[of(s)] - baseline);
            }
        }
        let shares: Tensor<2> = from_host(shares, [n, batch], &law.natural());
        let scales: Tensor<4> = from_host(scales, [n, batch, 1, 1], &law.natural());
        let score = law.constant().score(z.clone()).mul(scales);
        // A sum over the set, which `along` would average.
        let scalar = along(law, score * n as f64);
        let mean = (cost.clone() * shares).sum_dim(0).mean();
        let surrogate = mean + gradient_only(scalar);
        Ok(Outcome::with_surrogate(cost, surrogate, vec![z]))
    }
}

/// The numbers of a sample of one variable: a bit, or a one-hot vector.
fn encode(value: usize, k: usize, values_each: usize) -> Vec<f64> {
    match k == values_each {
        true => (0..k).map(|c| f64::from(u8::from(c == value))).collect(),
        false => vec![value as f64],
    }
}

/// The values of some variables, the first ones, with the logarithm of their probability.
#[derive(Clone, Debug)]
struct Configuration {
    values: Vec<usize>,
    log_p: f64,
    /// The logarithm of the probability plus Gumbel noise: the largest make the set.
    key: f64,
}

/// The set of each batch element.
///
/// The keys of all configurations are independent Gumbel variables around their log-probabilities,
/// and the `n` largest are a set drawn without replacement. The largest key below a part of a
/// configuration is a Gumbel variable around that part's log-probability, so that it is enough to
/// follow the `n` best parts.
fn draw(noise: &Noise, law: &Law) -> Vec<Vec<Configuration>> {
    let [n, batch, d, choices] = noise.get(0).dims();
    let uniform = to_host(noise.get(0));
    let logits = to_host(law.natural());
    let k = law.dims()[2];
    let log_p = logits.par_chunks(k).map(|logits| match logits {
        [logit] => vec![-softplus(*logit), -softplus(-logit)],
        several => log_softmax(several),
    });
    let log_p: Vec<Vec<f64>> = log_p.collect();
    let set = |element: usize| {
        let start = Configuration {
            values: Vec::with_capacity(d),
            log_p: 0.0,
            key: 0.0,
        };
        let mut beam = vec![start];
        for j in 0..d {
            let log_p = &log_p[element * d + j];
            let uniform = |slot: usize| {
                let first = ((slot * batch + element) * d + j) * choices;
                &uniform[first..first + choices]
            };
            let slots = beam.iter().enumerate();
            let mut next: Vec<Configuration> = slots
                .flat_map(|(slot, one)| children(one, log_p, uniform(slot)))
                .collect();
            next.sort_by(|a, b| b.key.total_cmp(&a.key));
            next.truncate(n);
            beam = next;
        }
        beam
    };
    (0..batch).into_par_iter().map(set).collect()
}

/// A configuration with each value of the next variable. Their keys are Gumbel variables under the
/// condition that the largest is the key that the configuration has.
fn children(one: &Configuration, log_p: &[f64], uniform: &[f64]) -> Vec<Configuration> {
    let noise = |u: &f64| -(-u.ln()).ln();
    let shifted = log_p.iter().map(|log_p| one.log_p + log_p);
    let free: Vec<f64> = shifted.zip(uniform).map(|(x, u)| x + noise(u)).collect();
    let largest = free.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let child = |(value, free): (usize, &f64)| {
        // -log(exp(-key) - exp(-largest) + exp(-free)) without overflow and cancellation.
        let gap = one.key - free + log_1m_exp(free - largest);
        let key = one.key - gap.max(0.0) - (-gap.abs()).exp().ln_1p();
        Configuration {
            values: one.values.iter().copied().chain([value]).collect(),
            log_p: one.log_p + log_p[value],
            key,
        }
    };
    free.iter().enumerate().map(child).collect()
}

/// `log(1 - exp(x))` for `x <= 0`.
fn log_1m_exp(x: f64) -> f64 {
    match x > -std::f64::consts::LN_2 {
        true => (-x.exp_m1()).ln(),
        false => (-x.exp()).ln_1p(),
    }
}

fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let position = logits.iter().position(|x| *x == largest);
    // Without the largest term, which is 1, so that a total near it keeps its digits.
    let others = logits
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != position);
    let total: f64 = others.map(|(_, x)| (x - largest).exp()).sum();
    let log_total = largest + total.ln_1p();
    logits.iter().map(|x| x - log_total).collect()
}

/// What the configurations of a set count.
struct Weights {
    /// `p_s R(S, s)`, which add up to 1.
    shares: Vec<f64>,
    /// `left[s][t]` is `p_t R^{-s}(S, t)`.
    left: Vec<Vec<f64>>,
}

impl Weights {
    /// From the logarithms of the probabilities of the members.
    fn new(log_p: &[f64]) -> Self {
        let n = log_p.len();
        let p: Vec<f64> = log_p.iter().map(|x| x.exp()).collect();
        let draw = sets(log_p);
        let share = |s: usize| p[s] * draw[1 << s] / draw[0];
        let left = |s: usize| {
            let of = |t: usize| match s == t {
                true => p[s],
                false => p[t] * draw[1 << s | 1 << t] / draw[1 << s],
            };
            (0..n).map(of).collect()
        };
        Self {
            shares: (0..n).map(share).collect(),
            left: (0..n).map(left).collect(),
        }
    }
}

/// For each part of a set, as a bit mask: the probability to draw the rest of the set, in any order,
/// if the part cannot be drawn.
fn sets(log_p: &[f64]) -> Vec<f64> {
    let n = log_p.len();
    let p: Vec<f64> = log_p.iter().map(|x| x.exp()).collect();
    let likely = (0..n).max_by(|a, b| log_p[*a].total_cmp(&log_p[*b]));
    let likely = likely.expect("a set has members");
    let sum = |mask: usize| -> f64 { (0..n).filter(|s| mask >> s & 1 == 1).map(|s| p[s]).sum() };
    let full = (1 << n) - 1;
    let mut draw = vec![1.0; 1 << n];
    for part in (0..full).rev() {
        // What is left when the part is gone. Near zero it takes the logarithm of the probability of
        // the likely one; and it is at least what is left of the set.
        let rest = match part >> likely & 1 == 1 {
            true => -log_p[likely].exp_m1() - sum(part & !(1 << likely)),
            false => 1.0 - sum(part),
        };
        let others = full & !part;
        let rest = rest.max(sum(others));
        let each = (0..n).filter(|s| others >> s & 1 == 1).map(|s| {
            // Where all underflows, one is as likely as the other.
            let next = match rest > 0.0 {
                true => p[s] / rest,
                false => f64::from(others.count_ones()).recip(),
            };
            next * draw[part | 1 << s]
        });
        draw[part] = each.sum();
    }
    draw
}
