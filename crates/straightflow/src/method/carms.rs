//! The antithetic REINFORCE estimator of categorical variables, CARMS.

use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::antithetic::along;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, NoiseSpec, Outcome};
use crate::ops::{from_host, to_host};

method! {
    /// Leave-one-out REINFORCE of categorical variables with draws that avoid each other, and the
    /// factor that corrects for it.
    ///
    /// For each variable, `u_1, …, u_n` are the antithetic uniform numbers of
    /// [`Arms`](super::Arms). A draw is the category whose interval `u_a` falls into, when the
    /// intervals of the categories, as long as their probabilities, are laid out in an order that
    /// is random and the same for all draws. Draws with distant numbers are then rarely equal. The
    /// `k (k - 1) / 2` orders have each pair of categories once at the two ends, and the others in
    /// between, so that any two can occur together.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `1/(n (n-1)) Σ_{a<b} (p_i p_j / J_ij) (f_a - f_b)(z_a - z_b)` for each variable,
    ///   where `i` and `j` are its categories in draws `a` and `b` and `J_ij` is the probability
    ///   that two draws have these categories: with the ends `l` and `r` of the intervals, the mean
    ///   over the orders of `C(r_i, r_j) + C(l_i, l_j) - C(l_i, r_j) - C(r_i, l_j)`, where
    ///   `C(x, y) = max(x^(1/(n-1)) + y^(1/(n-1)) - 1, 0)^(n-1)`.
    /// * **Requires** the values of the cost, and at least two draws.
    /// * **Bias**: none. The authors' code adds 1e-3 to `J` and clips the factor to [0.01, 10],
    ///   which is biased where a category is rare; that is left out here.
    /// * **Note**: it is the variant that the paper calls CARMS-I. Orders, intervals and `J` are
    ///   computed in double precision on the host.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Categorical::from_logits(Tensor::<3>::zeros([1, 2, 5], &Device::flex()))?;
    /// let gradient = estimator("carms:samples=3")?.gradient(Key::new(1), &q, |z| {
    ///     z.slice([0..3, 0..1, 0..2, 0..1]).sum_dims(&[2, 3])
    /// })?;
    /// assert_eq!(gradient.dims(), [1, 2, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Carms {}

    options CarmsConfig {
        /// The number of draws n of one estimate, at least 2: one set of mutually antithetic ones.
        samples: usize = 4,
    }

    facts {
        id: "carms",
        name: "CARMS",
        families: &[FamilyKind::Categorical],
        bias: none,
        needs: [Value],
        price: [1, 0],
        reference: "Dimitriev, Zhou 2021, arXiv 2110.14002",
        layers: Layerwise,
        noise: Uniform,
        least: 2,
    }
}

impl Estimator for Carms {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let [batch, d, _] = law.dims();
        vec![
            NoiseSpec::uniform("uniform", [n, batch, d, 1]),
            NoiseSpec::uniform("order", [1, batch, d, 1]),
        ]
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let [n, batch, d, _] = noise.get(0).dims();
        let k = law.dims()[2];
        let drawn = draw(noise, law);
        let z: Vec<f64> = (0..n)
            .flat_map(|a| drawn.iter().map(move |variable| variable.categories[a]))
            .flat_map(|hot| (0..k).map(move |c| f64::from(u8::from(c == hot))))
            .collect();
        let z: Tensor<4> = from_host(z, [n, batch, d, k], &law.natural());
        let cost = objective.evaluate(z.clone(), law)?;
        let values = to_host(cost.clone());
        let pairs = (n * (n - 1)) as f64;
        let gradient = drawn.iter().enumerate().flat_map(|(index, variable)| {
            let mut gradient = vec![0.0; k];
            let factors = variable.factors.iter();
            for ((a, b), factor) in pairs_of(n).zip(factors) {
                let [f, g] = [a, b].map(|draw| values[draw * batch + index / d]);
                let term = factor * (f - g) / pairs;
                gradient[variable.categories[a]] += term;
                gradient[variable.categories[b]] -= term;
            }
            gradient
        });
        let gradient = from_host(gradient.collect(), [1, batch, d, k], &law.natural());
        Ok(Outcome::new(cost, along(law, gradient), z))
    }
}

/// All draws of one variable.
struct Variable {
    categories: Vec<usize>,
    /// `p_i p_j / J_ij` of each pair of draws, in the order of [`pairs_of`]; 0 for equal categories,
    /// which have nothing to tell.
    factors: Vec<f64>,
}

fn pairs_of(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)))
}

/// The draws of all variables, in row-major order of `[batch, d]`.
fn draw(noise: &Noise, law: &Law) -> Vec<Variable> {
    let uniform = to_host(noise.get(0));
    let order = to_host(noise.get(1));
    let logits = to_host(law.natural());
    let k = law.dims()[2];
    let variables = logits.par_chunks(k).enumerate().map(|(index, logits)| {
        let uniform = uniform.iter().skip(index).step_by(order.len());
        let intervals = Intervals::new(logits);
        let number = (order[index] * intervals.orders.len() as f64) as usize;
        let number = number.min(intervals.orders.len() - 1);
        let antithetic = antithetic(uniform.copied().collect());
        let draw = |u: &f64| intervals.category(number, *u);
        let categories: Vec<usize> = antithetic.iter().map(draw).collect();
        let others = categories.len() as f64 - 1.0;
        let factor =
            |(a, b): (usize, usize)| intervals.factor(categories[a], categories[b], others);
        Variable {
            factors: pairs_of(categories.len()).map(factor).collect(),
            categories,
        }
    });
    variables.collect()
}

/// Uniform numbers that avoid each other, of independent ones.
fn antithetic(uniform: Vec<f64>) -> Vec<f64> {
    let exponential: Vec<f64> = uniform.iter().map(|u| -u.ln()).collect();
    let total: f64 = exponential.iter().sum();
    let others = uniform.len() as i32 - 1;
    let rest = exponential.iter().map(|share| (total - share) / total);
    rest.map(|rest| rest.powi(others)).collect()
}

/// The intervals of the categories of one variable, in every order.
struct Intervals {
    probabilities: Vec<f64>,
    orders: Vec<Vec<usize>>,
    /// For each order the ends `[l, r]` of each category's interval.
    ends: Vec<Vec<[f64; 2]>>,
}

impl Intervals {
    fn new(logits: &[f64]) -> Self {
        let k = logits.len();
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|x| (x - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let probabilities: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let orders = pairs_of(k).map(|(first, last)| {
            let between = (0..k).filter(move |c| *c != first && *c != last);
            [first].into_iter().chain(between).chain([last]).collect()
        });
        let orders: Vec<Vec<usize>> = orders.collect();
        let ends = orders.iter().map(|order| {
            let mut ends = vec![[0.0; 2]; k];
            let mut left = 0.0;
            for category in order {
                let right = f64::min(left + probabilities[*category], 1.0);
                ends[*category] = [left, right];
                left = right;
            }
            // What rounding leaves belongs to the last one.
            ends[order[k - 1]][1] = 1.0;
            ends
        });
        Self {
            ends: ends.collect(),
            orders,
            probabilities,
        }
    }

    /// The category whose interval a number falls into, in an order.
    fn category(&self, order: usize, u: f64) -> usize {
        let ends = &self.ends[order];
        let possible = |c: &&usize| self.probabilities[**c] > 0.0;
        let mut in_order = self.orders[order].iter().filter(possible);
        let last = self.orders[order].iter().rfind(possible);
        let found = in_order.find(|c| u < ends[**c][1]).or(last);
        // None is possible if a logit is not finite, which is found when the cost is checked.
        found.copied().unwrap_or(0)
    }

    /// `p_i p_j / J_ij`.
    fn factor(&self, i: usize, j: usize, others: f64) -> f64 {
        if i == j {
            return 0.0;
        }
        let joint: f64 = self
            .ends
            .iter()
            .map(|ends| joint(ends[i], ends[j], others))
            .sum();
        let joint = joint / self.ends.len() as f64;
        // Two categories occur together, so that J can only be zero by rounding: next to a pair of
        // probability 1e-16 anything is.
        match joint > 0.0 {
            true => self.probabilities[i] * self.probabilities[j] / joint,
            false => 0.0,
        }
    }
}

/// The probability that two antithetic numbers fall into two intervals.
fn joint([l, r]: [f64; 2], [l_other, r_other]: [f64; 2], others: f64) -> f64 {
    let both_below = |x: f64, y: f64| {
        let root = |x: f64| x.powf(others.recip());
        (root(x) + root(y) - 1.0).max(0.0).powf(others)
    };
    both_below(r, r_other) + both_below(l, l_other)
        - both_below(l, r_other)
        - both_below(r, l_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities of two categories together, as computed elsewhere for two draws.
    #[test]
    fn the_joint_probabilities_of_a_pair_are_known() {
        let intervals = Intervals::new(&[0.5, -0.3, 1.1]);
        let p = &intervals.probabilities;
        for (i, j, want) in [
            (0, 1, 0.045_782_886_402),
            (0, 2, 0.259_892_176_134),
            (1, 2, 0.091_565_772_804),
        ] {
            let got = p[i] * p[j] / intervals.factor(i, j, 1.0);
            assert!((got - want).abs() < 1e-12, "{i} {j}: {got} {want}");
        }
    }

    /// Together with equal categories, the pairs of a category have its probability, for any number
    /// of draws.
    #[test]
    fn joint_probabilities_add_up() {
        let intervals = Intervals::new(&[0.7, -2.0, 0.1, 1.3, -0.4]);
        for others in [1.0, 2.0, 5.0] {
            for (i, p) in intervals.probabilities.iter().enumerate() {
                let with = |j: usize| -> f64 {
                    let each = intervals.ends.iter();
                    each.map(|ends| joint(ends[i], ends[j], others)).sum()
                };
                let sum: f64 = (0..5).map(with).sum::<f64>() / 10.0;
                assert!((sum - p).abs() < 1e-13, "{i}: {sum} {p}");
            }
        }
    }
}
