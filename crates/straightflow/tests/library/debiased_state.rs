//! What debiased straight-through learns, that it is used before it is learned from, and stacked
//! layers of it.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::Noise;
use straightflow::prelude::*;

use crate::debiased_scalar::middles;
use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, leaf, tensor, values};

const D: usize = 3;
const SLOPES: [f64; D] = [0.7, -0.4, 0.2];
const CURVATURES: [f64; D] = [1.5, -0.6, 0.9];

type Cost = fn(Tensor<4>) -> Tensor<2>;

/// A quadratic cost with coupled coordinates: slopes, curvatures, and `0.3 z_i z_j`.
fn quadratic(z: Tensor<4>) -> Tensor<2> {
    let row = |x: &[f64]| tensor::<4>(x, [1, 1, D, 1], DType::F64);
    let sum = z.clone().sum_dim(2).square() - z.clone().square().sum_dim(2);
    let own = (z.clone() * row(&SLOPES) + z.square() * row(&CURVATURES) * 0.5).sum_dim(2);
    (own + sum * 0.15).squeeze_dims(&[2, 3])
}

fn law(family: Family) -> Law {
    let natural = [0.4, -0.8, 0.1].repeat(8);
    Law::new(family, tensor(&natural, [8, D, 1], DType::F64)).expect("valid")
}

fn new_state(estimator: &dyn Estimator, law: &Law) -> State {
    let shape = StateShape::of(law, 0);
    let state = estimator.init_state(Key::new(1), shape, &Device::flex().autodiff());
    state.expect("it learns")
}

/// Learns from many estimates, of which the surrogates are multiplied by a factor.
fn learn(spec: &str, law: &Law, steps: u64, factor: f64) -> State {
    learn_from(quadratic, spec, law, steps, factor)
}

fn learn_from(cost: Cost, spec: &str, law: &Law, steps: u64, factor: f64) -> State {
    let estimator = build(spec);
    let mut state = new_state(estimator.as_ref(), law);
    for step in 0..steps {
        let bound = estimator.bind(&state, None).expect("its own");
        let estimate = bound.estimate(Key::new(2).child(step), &law.leaf(), cost);
        let estimate = estimate.expect("valid");
        let _ = (estimate.surrogate.clone() * factor).backward();
        state.update(&estimate);
    }
    state
}

/// The numbers of a state, tensor by tensor.
fn numbers(state: &impl Module) -> Vec<Vec<f64>> {
    struct Read(Vec<Vec<f64>>);
    impl ModuleVisitor for Read {
        fn visit_float<const N: usize>(&mut self, param: &Param<Tensor<N>>) {
            self.0.push(values(param.val()));
        }
    }
    let mut read = Read(Vec::new());
    state.visit(&mut read);
    read.0
}

/// On a quadratic cost a bit's slope differs from the difference by half its curvature, up from 0
/// and down from 1; a count's by half its curvature, with the sign of its step.
#[test]
fn curvatures_of_a_quadratic_are_learned() {
    for (family, signs) in [
        (Family::Bernoulli, [1.0, -1.0]),
        (Family::Poisson, [1.0, 1.0]),
        (Family::NegativeBinomial { dispersion: 2.0 }, [1.0, 1.0]),
        (Family::Binomial { trials: 5 }, [1.0, 1.0]),
    ] {
        let law = law(family);
        for factor in [1.0, 37.0] {
            let state = learn("debiased-st:choice=variance", &law, 400, factor);
            let numbers = numbers(&state);
            let (sums, weights) = (&numbers[0], &numbers[1]);
            for (i, curvature) in CURVATURES.iter().enumerate() {
                for (cell, sign) in signs.iter().enumerate() {
                    let at = 2 * i + cell;
                    let got = sums[at] / weights[at];
                    let want = 0.5 * sign * curvature;
                    assert_close(&format!("{family:?} {i} {cell}"), &[got], &[want], 1e-9);
                }
            }
        }
    }
}

/// With the curvature learned nothing of the choice is left on a quadratic cost: the estimate is
/// that of all finite differences.
#[test]
fn a_learned_curvature_takes_the_choice_out_of_a_quadratic() {
    let law = law(Family::Bernoulli);
    let state = learn("debiased-st", &law, 3000, 1.0);
    let estimator = build("debiased-st").bind(&state, None).expect("its own");
    let specs = estimator.noise(&law, 1);
    let noise = Noise::draw(Key::new(9), &law, &specs);
    let all = FiniteDifference::default();
    let want = all.gradient(vec![noise.get(0)], &law, quadratic);
    let noise = vec![noise.get(0), noise.get(1)];
    let got = estimator.gradient(noise, &law, quadratic);
    let (got, want) = (values(got.expect("valid")), values(want.expect("valid")));
    assert_close("estimate", &got, &want, 1e-9);
}

/// Where the slope says all there is, a move has no residual; once that is learned, it is chosen by
/// the tenth that does not follow what was learned, and by nothing else.
#[test]
fn what_was_assumed_of_a_residual_is_forgotten() {
    const CURVATURE: f64 = 1.5;
    fn only_the_first_is_curved(z: Tensor<4>) -> Tensor<2> {
        let a = tensor::<4>(&SLOPES, [1, 1, D, 1], DType::F64);
        let c = tensor::<4>(&[0.5 * CURVATURE, 0.0, 0.0], [1, 1, D, 1], DType::F64);
        let costs = z.clone() * a + z.square() * c;
        costs.sum_dim(2).squeeze_dims(&[2, 3])
    }
    let law = law(Family::Bernoulli);
    let spec = "debiased-st:curvature=off";
    let state = learn_from(only_the_first_is_curved, spec, &law, 3000, 1.0);
    let estimator = build(spec).bind(&state, None).expect("its own");
    let noise = Noise::draw(Key::new(9), &law, &estimator.noise(&law, 1));
    let z = values(noise.get(0));
    let noise = vec![noise.get(0), noise.get(1)];
    let gradient = estimator.gradient(noise, &law, only_the_first_is_curved);
    let gradient = values(gradient.expect("valid"));
    let variances = [0.4, -0.8, 0.1].map(|logit: f64| sigmoid(logit) * sigmoid(-logit));
    let share = variances[0] / variances.iter().sum::<f64>();
    let probability = 0.9 + 0.1 * share;
    let mut corrected = 0;
    for (z, gradient) in z.chunks(D).zip(gradient.chunks(D)) {
        let slope = SLOPES[0] + CURVATURE * z[0];
        let base = variances[0] * slope;
        if (gradient[0] - base).abs() > 1e-9 {
            let difference = SLOPES[0] + 0.5 * CURVATURE;
            let want = base + variances[0] * (difference - slope) / probability;
            // After a few hundred observations of the others their root mean square is about 1e-5.
            assert_close("corrected", &[gradient[0]], &[want], 1e-4);
            corrected += 1;
        }
    }
    // Of 8 draws; 7.5 are expected.
    assert!(corrected >= 6, "{corrected} of 8 draws were corrected");
}

/// What was learned from a draw does not touch the estimate of the same draw: neither the state that
/// the estimate was made with nor its surrogate change, and two updates with other draws differ.
#[test]
fn the_state_is_used_before_it_is_updated() {
    let law = law(Family::Bernoulli);
    let estimator = build("debiased-st");
    let mut state = learn("debiased-st", &law, 5, 1.0);
    let before = numbers(&state);
    let bound = estimator.bind(&state, None).expect("its own");
    let again = || {
        let gradient = bound.gradient(Key::new(5), &law, quadratic);
        values(gradient.expect("valid"))
    };
    let first = again();
    assert_eq!(first, again(), "an estimate changed what it was made with");
    let estimate = bound.estimate(Key::new(5), &law.leaf(), quadratic);
    let estimate = estimate.expect("valid");
    // Without a backward pass there is nothing to learn from yet.
    state.update(&estimate);
    assert_eq!(numbers(&state), before);
    let _ = estimate.surrogate.backward();
    assert_eq!(numbers(&state), before);
    state.update(&estimate);
    assert_ne!(numbers(&state), before);
    assert_eq!(first, again());
}

/// A cost with a large slope that says nothing about its differences: the scale goes to zero, and
/// the variance is that of bitflip-1. On a linear cost it stays at one.
#[test]
fn the_scale_follows_what_the_slopes_are_worth() {
    fn steep(z: Tensor<4>) -> Tensor<2> {
        let a = tensor::<4>(&SLOPES, [1, 1, D, 1], DType::F64);
        let waves = (z.clone() * (std::f64::consts::TAU * 8.0)).sin();
        (z * a + waves).sum_dim(2).squeeze_dims(&[2, 3])
    }
    fn linear(z: Tensor<4>) -> Tensor<2> {
        let a = tensor::<4>(&SLOPES, [1, 1, D, 1], DType::F64);
        (z * a).sum_dim(2).squeeze_dims(&[2, 3])
    }
    for (cost, want) in [(steep as Cost, 0.0), (linear, 1.0)] {
        let law = law(Family::Bernoulli);
        let spec = "debiased-st:preset=stateless,scale=learned";
        let state = learn_from(cost, spec, &law, 200, 1.0);
        let numbers = numbers(&state);
        assert_close("scale", &[numbers[0][0] / numbers[1][0]], &[want], 0.02);
    }
}

/// Two layers of two bits; the logits of the second are `bias + z W`.
struct TwoLayers {
    lower: Tensor<3>,
    bias: Tensor<3>,
}

const WEIGHTS: [f64; 4] = [1.1, -0.7, 0.4, 0.9];
const LOWER: [f64; 2] = [0.5, -0.9];
const BIAS: [f64; 2] = [-0.3, 0.6];

fn upper(z: &[f64]) -> [f64; 2] {
    [0, 1].map(|j| BIAS[j] + z[0] * WEIGHTS[j] + z[1] * WEIGHTS[2 + j])
}

fn cost_at(z: &[f64], y: &[f64]) -> f64 {
    let s = 0.8 * z[0] - 0.5 * z[1] + 0.9 * y[0] + 0.4 * y[1];
    (1.3 * s + 0.2).sin() + 0.5 * s * s
}

impl Objective<Law> for TwoLayers {
    fn layers(&self) -> usize {
        2
    }

    fn layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        let [z, ..] = below else {
            return Law::new(Family::Bernoulli, self.lower.clone());
        };
        let [n, batch, ..] = z.dims();
        let w = tensor::<2>(&WEIGHTS, [2, 2], DType::F64);
        let up = z
            .clone()
            .reshape([n * batch, 2])
            .matmul(w)
            .reshape([n * batch, 2, 1]);
        Law::new(Family::Bernoulli, up + self.bias.clone().repeat_dim(0, n))
    }

    fn cost(&self, z: &[Tensor<4>], _q: &[Law]) -> straightflow::Result<Tensor<2>> {
        let term = |z: &Tensor<4>, a: [f64; 2]| {
            let a = tensor::<4>(&a, [1, 1, 2, 1], DType::F64);
            (z.clone() * a).sum_dim(2)
        };
        let s = term(&z[0], [0.8, -0.5]) + term(&z[1], [0.9, 0.4]);
        let f = (s.clone() * 1.3 + 0.2).sin() + s.square() * 0.5;
        Ok(f.squeeze_dims(&[2, 3]))
    }
}

fn bits() -> Vec<[f64; 2]> {
    vec![[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
}

fn probability(z: &[f64], logits: &[f64]) -> f64 {
    let each = z
        .iter()
        .zip(logits)
        .map(|(z, x)| sigmoid((2.0 * z - 1.0) * x));
    each.product()
}

/// The exact gradient with respect to the lower logits and the bias of the upper ones.
fn exact() -> Vec<f64> {
    let mut sum = vec![0.0; 4];
    for z in bits() {
        for y in bits() {
            let p = probability(&z, &LOWER) * probability(&y, &upper(&z));
            let score = [
                z[0] - sigmoid(LOWER[0]),
                z[1] - sigmoid(LOWER[1]),
                y[0] - sigmoid(upper(&z)[0]),
                y[1] - sigmoid(upper(&z)[1]),
            ];
            let terms = sum.iter_mut().zip(score);
            terms.for_each(|(sum, s)| *sum += p * cost_at(&z, &y) * s);
        }
    }
    sum
}

/// Where one of two bits is chosen instead of the other, for given logits.
fn chance(logits: &[f64]) -> f64 {
    let v = |x: f64| sigmoid(x) * sigmoid(-x);
    v(logits[0]) / (v(logits[0]) + v(logits[1]))
}

/// All draws of both layers and all choices, by the intervals of the uniform numbers on which every
/// comparison of the estimate has one outcome.
fn every_noise() -> Vec<(Vec<f64>, f64)> {
    let ends = |inner: Vec<f64>| middles([vec![0.0, 1.0], inner].concat());
    let lower = LOWER.map(|x| ends(vec![sigmoid(x)]));
    let all_upper = |j: usize| bits().iter().map(|z| sigmoid(upper(z)[j])).collect();
    let uppers = [0, 1].map(|j| ends(all_upper(j)));
    let first = ends(vec![chance(&LOWER)]);
    let second = ends(bits().iter().map(|z| chance(&upper(z))).collect());
    let axes = [
        &lower[0], &lower[1], &first, &uppers[0], &uppers[1], &second,
    ];
    axes.iter().fold(vec![(Vec::new(), 1.0)], |all, axis| {
        let join = |(u, p): (Vec<f64>, f64)| {
            let longer = axis
                .iter()
                .map(move |(x, w)| ([&u[..], &[*x]].concat(), p * w));
            longer.collect::<Vec<_>>()
        };
        all.into_iter().flat_map(join).collect()
    })
}

/// Unbiased, to rounding: the mean over all draws and choices of a two-layer model.
#[test]
fn two_layers_are_unbiased_by_enumeration() {
    let rows = every_noise();
    let batch = rows.len();
    for spec in ["debiased-st:preset=stateless", "debiased-st:preset=bitflip"] {
        let chain = TwoLayers {
            lower: leaf(&LOWER.repeat(batch), [batch, 2, 1], DType::F64),
            bias: leaf(&BIAS.repeat(batch), [batch, 2, 1], DType::F64),
        };
        let column = |from: usize, d: usize| {
            let numbers: Vec<f64> = rows
                .iter()
                .flat_map(|(u, _)| u[from..from + d].to_vec())
                .collect();
            tensor::<4>(&numbers, [1, batch, d, 1], DType::F64)
        };
        let p = tensor::<4>(&LOWER.map(sigmoid), [1, 1, 2, 1], DType::F64);
        let lowest = column(0, 2).lower(p.expand([1, batch, 2, 1]));
        let noise = vec![
            vec![lowest.float().cast(DType::F64), column(2, 1)],
            vec![column(3, 2), column(5, 1)],
        ];
        let estimate = build(spec).estimate_objective(noise, &chain);
        let estimate = estimate.expect("valid");
        let counts = estimate.counts.clone();
        let grads = estimate.surrogate.backward();
        let base = if spec.ends_with("bitflip") { 0 } else { 1 };
        assert_eq!([counts.evaluations(), counts.gradients()], [3, base]);
        let of = |leaf: &Tensor<3>| values(leaf.grad(&grads).expect("on the tape") * batch as f64);
        let (lower, bias) = (of(&chain.lower), of(&chain.bias));
        let mut mean = vec![0.0; 4];
        for (row, (_, p)) in rows.iter().enumerate() {
            for j in 0..2 {
                mean[j] += p * lower[2 * row + j];
                mean[2 + j] += p * bias[2 * row + j];
            }
        }
        assert_close(spec, &mean, &exact(), 1e-12);
    }
}

/// Each layer has a state of its own, and all of them learn.
#[test]
fn every_layer_learns() {
    let chain = TwoLayers {
        lower: leaf(&LOWER.repeat(4), [4, 2, 1], DType::F64),
        bias: leaf(&BIAS.repeat(4), [4, 2, 1], DType::F64),
    };
    let estimator = build("debiased-st:samples=2");
    let laws = [&chain.lower, &chain.bias]
        .map(|natural| Law::new(Family::Bernoulli, natural.clone()).expect("valid"));
    let shapes = StateShape::stacked(&laws, 0);
    let device = Device::flex().autodiff();
    let mut states =
        State::stacked(estimator.as_ref(), Key::new(1), &shapes, &device).expect("it learns");
    let bound = estimator.bind(&states, None).expect("its own");
    let estimate = bound
        .estimate_objective(Key::new(2), &chain)
        .expect("valid");
    let _ = estimate.surrogate.backward();
    states.update(&estimate);
    for state in &states.layers {
        let numbers = numbers(state);
        assert_eq!(numbers.len(), 4);
        for table in numbers {
            assert!(table.iter().any(|x| *x != 0.0), "{table:?}");
        }
    }
}
