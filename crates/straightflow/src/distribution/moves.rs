//! The unit moves of hard samples: a bit flips, a count takes one step, a category is swapped for
//! another. The exact gradient is a sum over them.

use burn::tensor::{Tensor, activation::softmax};

use super::Law;
use super::family::with_formulas;
use super::formulas::Formulas as _;
use crate::ops::to_host;

/// The moves from samples `z` `[n, batch, d, k]`, one for each coordinate; for a categorical
/// variable, one to each category; for a subset, one for each item. Numbers are on the host, in row-major order.
///
/// With the cost's *slope* along each move, the gradient with respect to the natural parameters is
/// the expectation of `sum over moves of weight * slope * direction`:
///
/// | family | move | weight | slope |
/// |---|---|---|---|
/// | Bernoulli | `z -> 1 - z` | `p (1 - p)` | `(1 - 2 z) (f(moved) - f(z))` |
/// | Binomial(N) | a step `s`: down with probability `z / N`, else up | `N p (1 - p)` | `s (f(moved) - f(z))` |
/// | Poisson | `z -> z + 1` | the rate | `f(moved) - f(z)` |
/// | Negative binomial(r), geometric (r = 1) | `z -> z + 1` | `m (r + z) / (r + m)` | `f(moved) - f(z)` |
/// | Categorical | `z -> e_j`, `j` not the category of `z` | `p_j (1 - p_j)` | `f(moved) - f(z)` |
/// | Subset | item `i` comes in for its partner, or goes out | `m_i (1 - m_i)` | `(1 - 2 z_i) (f(moved) - f(z))` |
///
/// The direction is the coordinate itself, or the item. For a category it is `(e_j - p) / (1 - p_j)`, that is
/// `e_j` less the probabilities of the others among themselves.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    law: Law,
    /// `[n, batch, d, k]`.
    pub dims: [usize; 4],
    pub z: Vec<f64>,
    /// The weight of each move; zero where there is none.
    pub weight: Vec<f64>,
    /// The step of each ordered coordinate or item, 1 or -1; empty for categories.
    step: Vec<f64>,
    /// The probabilities of categories, `[batch, d, k]`; empty for other families.
    p: Vec<f64>,
    /// The logits of categories and items, `[batch, d, k]`; empty for other families.
    logits: Vec<f64>,
    /// The uniform numbers of a family whose moves exchange two items, `[n, batch, d]`.
    side: Vec<f64>,
}

impl Moves {
    /// The moves from `z`. A family that [takes a side](super::Family::takes_side) has uniform
    /// numbers `side` `[n, batch, d, 1]`.
    pub fn new(law: &Law, z: Tensor<4>, side: Option<Tensor<4>>) -> Self {
        let law = law.constant();
        let dims = z.dims();
        let family = law.family();
        let weight = with_formulas!(family, formulas => {
            formulas.move_weight(law.natural(), z.clone())
        });
        let weight = to_host(weight);
        let z = to_host(z);
        let side = side.map_or_else(|| vec![1.0], to_host);
        let step = match family.is_one_hot() {
            true => Vec::new(),
            false => {
                // Only a family of trials looks at the uniform numbers.
                let draws = z.iter().zip(side.iter().cycle());
                with_formulas!(family, formulas => {
                    draws.map(|(z, side)| formulas.step(*z, *side)).collect()
                })
            }
        };
        let p = match family.is_one_hot() {
            true => to_host(softmax(law.natural(), 2)),
            false => Vec::new(),
        };
        let logits = match family.is_vector() {
            true => to_host(law.natural()),
            false => Vec::new(),
        };
        Self {
            law,
            dims,
            z,
            weight,
            step,
            p,
            logits,
            side,
        }
    }

    pub fn law(&self) -> &Law {
        &self.law
    }

    /// The moves of one draw.
    pub fn per_draw(&self) -> usize {
        self.dims[2] * self.dims[3]
    }

    /// The draws of all batch elements, `n * batch`.
    pub fn draws(&self) -> usize {
        self.dims[0] * self.dims[1]
    }

    pub fn is_categorical(&self) -> bool {
        self.law.family().is_one_hot()
    }

    pub fn has_swaps(&self) -> bool {
        self.law.family().has_swaps()
    }

    /// The step of a move, 1 or -1; 1 for a category.
    pub fn step(&self, index: usize) -> f64 {
        self.step.get(index).copied().unwrap_or(1.0)
    }

    /// The first move of the variable that a move belongs to.
    fn variable(&self, index: usize) -> usize {
        index - index % self.dims[3]
    }

    /// The category of a draw's variable, by one of its moves.
    pub fn category(&self, index: usize) -> usize {
        let start = self.variable(index);
        let hot = self.z[start..].iter().position(|z| *z == 1.0);
        hot.expect("a one-hot vector")
    }

    /// Makes a move in the draw `z`, `per_draw` numbers long, that it is a move of.
    pub fn apply(&self, index: usize, z: &mut [f64]) {
        let at = index % self.per_draw();
        if self.is_categorical() {
            let start = self.variable(at);
            z[start..start + self.dims[3]].fill(0.0);
            z[at] = 1.0;
            return;
        }
        if self.has_swaps() {
            let (k, start) = (self.dims[3], self.variable(at));
            let variable = self.variable(index);
            let logits = &self.logits[variable % self.logits.len()..][..k];
            let (item, side) = (at - start, self.side[variable / k]);
            let family = self.law.family();
            let partner = family.partner(logits, &z[start..start + k], item, side);
            if partner == item {
                // The subset is empty or whole: there is no other one.
                return;
            }
            z[start + partner] -= self.step(index);
        }
        z[at] += self.step(index);
    }

    /// What a gradient `df/dz` predicts of the slope of a move.
    pub fn predicted_slope(&self, index: usize, gradient: &[f64]) -> f64 {
        if self.is_categorical() {
            let start = self.variable(index);
            return gradient[index] - gradient[start + self.category(index)];
        }
        gradient[index]
    }

    /// Adds `x * direction` of a move to `to`.
    pub fn add_along(&self, index: usize, x: f64, to: &mut [f64]) {
        to[index] += x;
        if !self.is_categorical() {
            return;
        }
        let (start, k) = (self.variable(index), self.dims[3]);
        let of_law = start % self.p.len();
        let others = || (0..k).filter(|l| start + l != index);
        let logit = |l: usize| self.logits[of_law + l];
        let largest = others().map(logit).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = others().map(|l| (logit(l) - largest).exp()).sum();
        for l in others() {
            to[start + l] -= x * (logit(l) - largest).exp() / total;
        }
    }

    /// Adds `sum over all moves of weight * x * direction` to `to`. For categories `x` is zero at
    /// the category of the draw.
    pub fn add_weighted(&self, x: &[f64], to: &mut [f64]) {
        if !self.is_categorical() {
            for ((to, x), weight) in to.iter_mut().zip(x).zip(&self.weight) {
                *to += weight * x;
            }
            return;
        }
        let k = self.dims[3];
        for ((to, x), p) in to
            .chunks_mut(k)
            .zip(x.chunks(k))
            .zip(self.p.chunks(k).cycle())
        {
            let mean: f64 = p.iter().zip(x).map(|(p, x)| p * x).sum();
            for ((to, x), p) in to.iter_mut().zip(x).zip(p) {
                *to += p * (x - mean);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::distribution::FamilyKind;
    use crate::ops::from_host;

    /// Neither symmetric nor a polynomial.
    fn cost(z: f64) -> f64 {
        (0.7 * z + 0.3).sin() + 0.1 * z * z
    }

    /// The examples of ordered families with their values and probabilities.
    fn ordered() -> Vec<(Law, Vec<f64>, Vec<f64>)> {
        let examples = FamilyKind::ALL.iter().flat_map(|kind| kind.examples());
        let examples = examples.filter_map(|(family, natural)| {
            let one = family.count_law(natural[0])?;
            let z: Vec<f64> = (0..=one.window(45.0).1).map(|z| z as f64).collect();
            let p = z.iter().map(|z| one.pmf(*z)).collect();
            let device = (&Device::flex(), burn::tensor::DType::F64);
            let natural = Tensor::from_data(TensorData::new(natural, [1, 1, 1]), device);
            Some((Law::new(family, natural).expect("valid"), z, p))
        });
        examples.collect()
    }

    fn samples(z: &[f64], law: &Law) -> Tensor<4> {
        from_host(z.to_vec(), [z.len(), 1, 1, 1], &law.natural())
    }

    #[test]
    fn step_weights_give_the_gradient_from_either_side() {
        for (law, z, p) in ordered() {
            let expect =
                |each: &dyn Fn(usize) -> f64| -> f64 { (0..z.len()).map(|i| p[i] * each(i)).sum() };
            let score = to_host(law.score(samples(&z, &law)));
            let [down, up] = law.step_weights(samples(&z, &law)).map(to_host);
            let want = expect(&|i| score[i] * cost(z[i]));
            // A weight that is the same for all draws has one entry.
            let from_below = expect(&|i| up[i % up.len()] * (cost(z[i] + 1.0) - cost(z[i])));
            let from_above = expect(&|i| down[i] * (cost(z[i]) - cost(z[i] - 1.0)));
            let family = law.family();
            assert!((from_below - want).abs() < 1e-11, "{family:?} up");
            assert!((from_above - want).abs() < 1e-11, "{family:?} down");
            if family.weighs_draws() {
                let weight = Moves::new(&law, samples(&z, &law), None).weight;
                assert_eq!(weight, up, "{family:?}");
            }
        }
    }

    /// The same move on the host and as tensors, which stays within the support.
    #[test]
    fn moves_on_the_host_are_those_of_tensors() {
        for (law, z, _) in ordered() {
            for u in [0.01, 0.3, 0.6, 0.99] {
                let sides = samples(&vec![u; z.len()], &law);
                let side = law.family().trials_of_step().map(|_| sides);
                let moves = Moves::new(&law, samples(&z, &law), side.clone());
                let moved = to_host(law.moved(samples(&z, &law), side));
                for (i, moved) in moved.iter().enumerate() {
                    assert_eq!(*moved, z[i] + moves.step(i), "{:?}", law.family());
                    let one = law.count_laws().expect("ordered")[0];
                    assert!(one.pmf(*moved) > 0.0, "{:?}: {moved}", law.family());
                }
            }
        }
    }
}
