//! The estimator with control variates from a discrete Stein operator, RODEO.

use burn::tensor::{Device, Tensor};

use super::reinforce::leave_one_out;
use crate::Key;
use crate::antithetic::along;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, part, read};
use crate::estimate::{Estimator, LayerState, Noise, Outcome, StateShape, SteinNetwork};
use crate::ops::fused::sigmoid;

method! {
    /// REINFORCE with the costs of the other draws as a baseline, and two learned control variates
    /// that a Stein operator makes.
    ///
    /// With the probability `q_i = p_i (1 - b_i) + (1 - p_i) b_i` that bit `i` is the other one,
    /// given the rest, `(A h)(b) = (1/d) Σ_i q_i [h(b flipped at i) - h(b)]` has mean zero for
    /// every function `h`. Here `h` is a network of what the other draws say about the cost, so that
    /// all flipped neighbours of a draw take no evaluation.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `(1/n) Σ_k (f_k - 1/(n-1) Σ_{j ≠ k} [f_j + α (A h_j)(z_j)]) (z_k - p) +
    ///   β A[H_k(·)(· - p)](z_k)`, where `h_k` and `H_k` are the two outputs of a network on
    ///   `(∇f(z_j)·(y - z_j), f_j)`, averaged over the other draws `j ≠ k`.
    /// * **Requires** values and gradients of the cost at hard samples, and at least two draws. The
    ///   network, `α` and `β` are [`State`](crate::estimator::State); the surrogate contains the
    ///   mean square of the gradient for it, with everything else stopped. Both numbers start at 0,
    ///   where it is REINFORCE with `loo`.
    /// * **Bias**: none, whatever the state is.
    /// * **Price**: the second evaluation is that of the model's own gradients, because burn's tape
    ///   is consumed by the first backward pass.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([4, 3], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let code = SamplerConfig::new("rodeo").init_for(Key::new(1), &q)?;
    /// let estimate = code.estimate(Key::new(2), &q, |z| z.sum_dim(2).square())?;
    /// assert!(logits.grad(&estimate.surrogate.backward()).is_some());
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Rodeo { attached: Attached }

    options RodeoConfig {
        /// The leaky rectified units of the network.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate, at least 2.
        samples: usize = 2,
    }

    facts {
        id: "rodeo",
        name: "RODEO",
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value, Gradient],
        price: [2, 1],
        reference: "Shi, Zhou, Hwang, Titsias, Mackey 2022, arXiv 2202.09497",
        layers: Layerwise,
        learns: attached,
        least: 2,
    }
}

impl Rodeo {
    fn learns(&self) -> bool {
        true
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        if !has(&state.coefficients, 2) {
            return Some("coefficients");
        }
        state.stein.is_none().then_some("Stein network")
    }
}

impl Estimator for Rodeo {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let state = self.attached.layer(&ENTRY, 0)?;
        let coefficients = read(part(&state.coefficients), law)?;
        let network = part(&state.stein);
        let z = noise.get(0);
        let (values, slope) = objective.value_and_gradient(z.clone(), law)?;
        let stein = Stein {
            law: &law.constant(),
            z: z.clone().squeeze_dim(3),
            values,
            slope: slope.squeeze_dim(3),
        };
        // On the tape of the state.
        let [advantage, correction] = stein.terms(coefficients, |predicted, cost| {
            network.forward(predicted, cost, law)
        })?;
        let advantage: Tensor<2> = advantage.squeeze_dim(2);
        let correction: Tensor<4> = correction.unsqueeze_dim(3);

        let cost = objective.evaluate(z.clone(), law)?;
        let score = law.log_prob(z.clone()) * advantage.clone().inner();
        let each = advantage.unsqueeze_dims::<4>(&[2, 3]) * law.constant().score(z.clone());
        let each = each + correction.clone();
        let scalar = score.mean() + along(law, correction.inner());
        let variance = each.mean_dim(0).square().mean();
        Ok(Outcome::new(cost, scalar + variance, z))
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let network = SteinNetwork::new(key, self.config.hidden, device, shape.dtype);
        Some(LayerState {
            coefficients: Some(numbers(&[0.0, 0.0], device, shape.dtype)),
            stein: Some(network),
            ..LayerState::default()
        })
    }
}

/// The draws of an estimate, all constants.
struct Stein<'a> {
    law: &'a Law,
    /// `[n, batch, d]`.
    z: Tensor<3>,
    /// `[n, batch]`.
    values: Tensor<2>,
    /// `[n, batch, d]`.
    slope: Tensor<3>,
}

impl Stein<'_> {
    /// What multiplies the score of each draw, `[n, batch, 1]`, and what is added to the product,
    /// `[n, batch, d]`, on the tapes of the coefficients `alpha, beta` and of the network, which maps
    /// points `[n, batch, points]` and costs `[n, batch, 1]` to two outputs in the shape of the points.
    fn terms(
        &self,
        coefficients: Tensor<1>,
        network: impl Fn(Tensor<3>, Tensor<3>) -> Result<[Tensor<3>; 2]>,
    ) -> Result<[Tensor<3>; 2]> {
        let [n, batch, d] = self.z.dims();
        let [alpha, beta] = [0, 1].map(|i| coefficients.clone().narrow(0, i, 1).reshape([1, 1, 1]));
        let sign = self.z.clone() * -2.0 + 1.0;
        let mut sums: Option<[Tensor<3>; 2]> = None;
        for shift in 1..n {
            // Of another draw, a different one for each draw.
            let slope = rolled(self.slope.clone(), shift);
            let at = self.z.clone() - rolled(self.z.clone(), shift);
            let here = (slope.clone() * at).sum_dim(2);
            let flipped = slope * sign.clone() + here.clone();
            let cost = rolled(self.values.clone(), shift).unsqueeze_dim::<3>(2);
            let points = Tensor::cat(vec![here, flipped], 2);
            let outputs = network(points, cost)?;
            sums = Some(match sums {
                None => outputs,
                Some([h, g]) => {
                    let [more_h, more_g] = outputs;
                    [h + more_h, g + more_g]
                }
            });
        }
        let others = (n as f64 - 1.0).recip();
        let outputs = sums.expect("at least two draws");
        // The function at the draw, and the function at its neighbours.
        let [h, g] = outputs.map(|sum| {
            let mean = sum * others;
            [mean.clone().narrow(2, 0, 1), mean.narrow(2, 1, d)]
        });
        let natural = self.law.natural().squeeze_dim::<2>(2).unsqueeze::<3>();
        // The probability of the other value of each bit.
        let other = sigmoid(natural.expand([n, batch, d]) * sign.clone());
        let per_bit = (d as f64).recip();
        let operator =
            |[here, there]: [Tensor<3>; 2]| (other.clone() * (there - here)).sum_dim(2) * per_bit;
        let control = operator(h) * alpha;
        let of_others = (control.clone().sum_dim(0) - control) * others;
        let advantage = leave_one_out(self.values.clone()).unsqueeze_dim::<3>(2) - of_others;
        // A neighbour's own coordinate has moved as well.
        let mean = self.law.mean().squeeze_dim::<2>(2).unsqueeze::<3>();
        let moved = other.clone() * g[1].clone() * sign * per_bit;
        let correction = (operator(g) * (self.z.clone() - mean) + moved) * beta;
        Ok([advantage, correction])
    }
}

/// Draw `k` in the place of draw `k - shift`.
fn rolled<const D: usize>(x: Tensor<D>, shift: usize) -> Tensor<D> {
    let n = x.dims()[0];
    let [first, second] = [x.clone().narrow(0, shift, n - shift), x.narrow(0, 0, shift)];
    Tensor::cat(vec![first, second], 0)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, TensorData};

    use super::*;
    use crate::distribution::Family;
    use crate::ops::to_host;

    const LOGITS: [f64; 3] = [0.4, -0.8, 1.1];
    const A: [f64; 3] = [0.7, -1.1, 0.4];

    fn cost(b: &[f64]) -> (f64, [f64; 3]) {
        let t: f64 = A.iter().zip(b).map(|(a, b)| a * b).sum();
        let by_t = 1.3 * (1.3 * t + 0.2).cos() + t;
        let mut slope = A.map(|a| a * by_t);
        slope[0] += 0.6 * b[2];
        slope[2] += 0.6 * b[0];
        (
            (1.3 * t + 0.2).sin() + 0.5 * t * t + 0.6 * b[0] * b[2],
            slope,
        )
    }

    fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(
            TensorData::new(values, shape),
            (&Device::flex(), DType::F64),
        )
    }

    /// All pairs of draws of three bits, with the network `(.7 x + .2 c, .3 tanh x)` and both
    /// coefficients 1: the mean is the exact gradient, and the variance is what it is elsewhere.
    #[test]
    fn a_given_network_has_the_known_variance() {
        let bits = |i: usize| [0, 1, 2].map(|j| (i >> j & 1) as f64);
        let p = LOGITS.map(|x| 1.0 / (1.0 + (-x).exp()));
        let probability = |i: usize| -> f64 {
            let each = bits(i).into_iter().zip(p);
            each.map(|(b, p)| if b == 1.0 { p } else { 1.0 - p })
                .product()
        };
        let pairs: Vec<[usize; 2]> = (0..64).map(|i| [i / 8, i % 8]).collect();
        let draws = || {
            [0, 1]
                .into_iter()
                .flat_map(|k| pairs.iter().map(move |pair| pair[k]))
        };
        let z: Vec<f64> = draws().flat_map(bits).collect();
        let values = draws().map(|i| cost(&bits(i)).0).collect();
        let slope = draws().flat_map(|i| cost(&bits(i)).1).collect();
        let law = Law::new(Family::Bernoulli, tensor(LOGITS.repeat(64), [64, 3, 1]));
        let law = law.expect("valid");
        let stein = Stein {
            law: &law,
            z: tensor(z.clone(), [2, 64, 3]),
            values: tensor(values, [2, 64]),
            slope: tensor(slope, [2, 64, 3]),
        };
        let network = |x: Tensor<3>, c: Tensor<3>| Ok([x.clone() * 0.7 + c * 0.2, x.tanh() * 0.3]);
        let terms = stein.terms(tensor(vec![1.0, 1.0], [2]), network);
        let [advantage, correction] = terms.expect("valid").map(to_host);
        let mean_of_draws = |element: usize, j: usize| -> f64 {
            let of = |k: usize| {
                let at = k * 64 + element;
                advantage[at] * (z[at * 3 + j] - p[j]) + correction[at * 3 + j]
            };
            0.5 * (of(0) + of(1))
        };
        let (mut mean, mut square) = ([0.0; 3], 0.0);
        for (element, [a, b]) in pairs.iter().enumerate() {
            let weight = probability(*a) * probability(*b);
            for (j, mean) in mean.iter_mut().enumerate() {
                let g = mean_of_draws(element, j);
                *mean += weight * g;
                square += weight * g * g;
            }
        }
        let exact = [0.290_349_713_175, -0.264_257_659_656, 0.144_609_854_153];
        for (got, want) in mean.iter().zip(exact) {
            assert!((got - want).abs() < 1e-11, "{mean:?}");
        }
        let variance = square - mean.iter().map(|x| x * x).sum::<f64>();
        assert!((variance - 0.365_338_676_104).abs() < 1e-11, "{variance}");
    }
}
