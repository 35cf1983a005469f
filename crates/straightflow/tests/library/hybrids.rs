//! The control-variate hybrids: their formulas for fixed noise, what they learn, and that nothing
//! leaks between the two.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, tensor, values};

const BATCH: usize = 6;

/// Neither symmetric, nor quadratic, nor a sum over coordinates; defined for relaxed samples.
fn cost(z: Tensor<4>) -> Tensor<2> {
    let [_, _, d, k] = z.dims();
    let a: Vec<f64> = (0..d * k).map(direction).collect();
    let a = tensor::<4>(&a, [1, 1, d, k], z.dtype());
    let s = (z * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
    (s.clone() * 0.9 + 0.2).sin() + s.square() * 0.4
}

fn direction(i: usize) -> f64 {
    (1.3 * i as f64 + 0.5).sin() + 0.3
}

fn cost_at(z: &[f64]) -> f64 {
    let s: f64 = z.iter().enumerate().map(|(i, z)| direction(i) * z).sum();
    (0.9 * s + 0.2).sin() + 0.4 * s * s
}

fn law(family: Family) -> Law {
    let k = if family == Family::Categorical { 3 } else { 1 };
    let natural: Vec<f64> = (0..BATCH * 2 * k)
        .map(|i| (1.1 * i as f64).sin() * 1.5)
        .collect();
    Law::new(family, tensor(&natural, [BATCH, 2, k], DType::F64)).expect("valid")
}

/// The noise that an estimator declares for a law, from a key.
fn noise(estimator: &dyn Estimator, law: &Law, seed: u64) -> Vec<Tensor<4>> {
    let specs = estimator.noise(law, estimator.draws());
    let noise = straightflow::estimator::Noise::draw(Key::new(seed), law, &specs);
    (0..specs.len()).map(|i| noise.get(i)).collect()
}

fn input() -> Tensor<2> {
    let x: Vec<f64> = (0..BATCH * 2).map(|i| (0.8 * i as f64).cos()).collect();
    tensor(&x, [BATCH, 2], DType::F64)
}

fn state_of(estimator: &dyn Estimator, law: &Law) -> State {
    let shape = StateShape::of(law, 2);
    let state = estimator.init_state(Key::new(3), shape, &Device::flex().autodiff());
    // Away from the start, where zero biases and unit scales could hide something.
    state
        .expect("it learns")
        .map(&mut Add { at: None, by: 0.07 })
}

/// Adds a number to all parameters, or to the one of an index in the order of the module.
struct Add {
    at: Option<usize>,
    by: f64,
}

impl ModuleMapper for Add {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|x| {
            let shape = x.dims();
            let mut numbers = values(x.clone());
            for number in &mut numbers {
                match &mut self.at {
                    None => *number += self.by,
                    Some(0) => {
                        *number += self.by;
                        self.at = Some(usize::MAX);
                    }
                    Some(left) => *left -= 1,
                }
            }
            let moved = tensor::<D>(&numbers, shape, x.dtype());
            Tensor::from_inner(moved).require_grad()
        })
    }
}

struct Gradients<'a> {
    grads: &'a GradientsParams,
    values: Vec<f64>,
}

impl ModuleVisitor for Gradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self.grads.get::<D>(param.id).expect("a gradient");
        self.values.extend(values(gradient));
    }
}

/// What the surrogate's backward pass says about the parameters of the state.
fn learned_gradient(estimator: &dyn Estimator, state: &State, law: &Law, seed: u64) -> Vec<f64> {
    let bound = estimator.bind(state, Some(input())).expect("its own");
    let noise = noise(estimator, law, seed);
    let estimate = bound.estimate(noise, &law.leaf(), cost);
    let mut grads = estimate.expect("valid").surrogate.backward();
    let grads = GradientsParams::from_module(&mut grads, state);
    let mut visitor = Gradients {
        grads: &grads,
        values: Vec::new(),
    };
    state.visit(&mut visitor);
    visitor.values
}

/// The mean of the squared gradient of each batch element. With one draw, or with draws that make
/// one estimate together, it is what the state learns.
fn mean_square(estimator: &dyn Estimator, state: &State, law: &Law, seed: u64) -> f64 {
    let bound = estimator.bind(state, Some(input())).expect("its own");
    let noise = noise(estimator, law, seed);
    let gradient = bound.gradient(noise, law, cost);
    let gradient = values(gradient.expect("valid"));
    gradient.iter().map(|g| g * g).sum::<f64>() / gradient.len() as f64
}

/// Every parameter of the state has the gradient of mean(g^2), by central differences in f64. The
/// temperature's comes from a difference of gradients with reach 1.5e-8.
#[test]
fn what_is_learned_is_the_mean_square_of_the_gradient() {
    let both = &[Family::Bernoulli, Family::Categorical][..];
    for (spec, families, temperature) in [
        ("rebar:tune=eta", both, None),
        ("rebar", both, Some(1)),
        ("rebar:baseline=learned,hidden=3", both, Some(14)),
        ("relax:hidden=3", both, None),
        ("relax:hidden=3,control=sum", both, Some(1)),
        ("double-cv", &both[..1], None),
        ("double-cv:samples=4", &both[..1], None),
    ] {
        for family in families {
            let (estimator, law) = (build(spec), law(*family));
            let state = state_of(&*estimator, &law);
            let got = learned_gradient(&*estimator, &state, &law, 5);
            let moved = |at: usize, by: f64| {
                let state = state.clone().map(&mut Add { at: Some(at), by });
                mean_square(&*estimator, &state, &law, 5)
            };
            let difference = |at| (moved(at, 1e-5) - moved(at, -1e-5)) / 2e-5;
            let want: Vec<f64> = (0..got.len()).map(difference).collect();
            assert!(want.iter().all(|x| x.abs() > 1e-7), "{spec}: {want:?}");
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let tolerance = if Some(i) == temperature { 1e-7 } else { 1e-8 };
                let what = format!("{spec}, {family:?}, parameter {i}");
                assert_close(&what, &[*got], &[*want], tolerance);
            }
        }
    }
}

/// A relaxed sample of one batch element, and the variable with its law given the hard sample,
/// which the parameters move while its own noise stays.
struct Draw {
    family: Family,
    natural: Vec<f64>,
    u: Vec<f64>,
    /// The categories of a variable; 1 for bits.
    k: usize,
}

impl Draw {
    fn z(&self, natural: &[f64]) -> Vec<f64> {
        let noise = |u: f64| match self.family {
            Family::Categorical => -(-u.ln()).ln(),
            _ => (u / (1.0 - u)).ln(),
        };
        natural
            .iter()
            .zip(&self.u)
            .map(|(x, u)| x + noise(*u))
            .collect()
    }

    fn hard(&self) -> Vec<f64> {
        let z = self.z(&self.natural);
        let one = |i: usize| match self.family {
            Family::Categorical => {
                let own = &z[i / self.k * self.k..][..self.k];
                own.iter().all(|other| *other <= z[i])
            }
            _ => z[i] > 0.0,
        };
        (0..z.len()).map(|i| f64::from(u8::from(one(i)))).collect()
    }

    /// The conditional variable at other parameters, drawn with the noise that gives `z` at our
    /// own.
    fn conditional(&self, natural: &[f64]) -> Vec<f64> {
        let (z, hard) = (self.z(&self.natural), self.hard());
        if self.family != Family::Categorical {
            let each = |i: usize| {
                let (own, other) = (sigmoid(self.natural[i]), sigmoid(natural[i]));
                let u = if hard[i] == 1.0 {
                    let v = (self.u[i] - (1.0 - own)) / own;
                    1.0 - other + other * v
                } else {
                    self.u[i] / (1.0 - own) * (1.0 - other)
                };
                natural[i] + (u / (1.0 - u)).ln()
            };
            return (0..z.len()).map(each).collect();
        }
        let mut conditional = Vec::new();
        for start in (0..z.len()).step_by(self.k) {
            let log_sum = |natural: &[f64]| -> f64 {
                natural[start..][..self.k]
                    .iter()
                    .map(|x| x.exp())
                    .sum::<f64>()
                    .ln()
            };
            let top = (start..start + self.k)
                .find(|i| hard[*i] == 1.0)
                .expect("one-hot");
            let gumbel = z[top] - log_sum(&self.natural);
            let highest = log_sum(natural) + gumbel;
            for i in start..start + self.k {
                let exponential = ((-z[i]).exp() - (-z[top]).exp()) * self.natural[i].exp();
                conditional.push(if i == top {
                    highest
                } else {
                    -(exponential * (-natural[i]).exp() + (-highest).exp()).ln()
                });
            }
        }
        conditional
    }

    fn score(&self) -> Vec<f64> {
        let p = |i: usize| match self.family {
            Family::Categorical => {
                let own = &self.natural[i / self.k * self.k..][..self.k];
                self.natural[i].exp() / own.iter().map(|x| x.exp()).sum::<f64>()
            }
            _ => sigmoid(self.natural[i]),
        };
        self.hard()
            .iter()
            .enumerate()
            .map(|(i, b)| b - p(i))
            .collect()
    }

    /// `(f(b) - c(z~)) score + d/dnatural c(z) - d/dnatural c(z~)`, the derivatives by differences.
    fn estimate(&self, c: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let rest = cost_at(&self.hard()) - c(&self.z(&self.natural));
        let score = self.score();
        let each = |i: usize| {
            let moved = |by: f64| {
                let mut natural = self.natural.clone();
                natural[i] += by;
                c(&self.z(&natural)) - c(&self.conditional(&natural))
            };
            rest * score[i] + (moved(1e-5) - moved(-1e-5)) / 2e-5
        };
        (0..self.natural.len()).map(each).collect()
    }

    fn softened(&self, z: &[f64], temperature: f64) -> Vec<f64> {
        let each = |i: usize| match self.family {
            Family::Categorical => {
                let own = &z[i / self.k * self.k..][..self.k];
                let others = own.iter().map(|other| ((other - z[i]) / temperature).exp());
                1.0 / others.sum::<f64>()
            }
            _ => sigmoid(z[i] / temperature),
        };
        (0..z.len()).map(each).collect()
    }
}

fn draws(law: &Law, u: &Tensor<4>) -> Vec<Draw> {
    let [_, d, k] = law.dims();
    let (natural, u) = (values(law.natural()), values(u.clone()));
    let draw = |b: usize| Draw {
        family: law.family(),
        natural: natural[b * d * k..][..d * k].to_vec(),
        u: u[b * d * k..][..d * k].to_vec(),
        k,
    };
    (0..BATCH).map(draw).collect()
}

#[test]
fn rebar_is_its_formula() {
    let (eta, temperature) = (0.7, 0.4);
    let estimator = build(&format!(
        "rebar:tune=none,eta={eta},temperature={temperature}"
    ));
    for family in [Family::Bernoulli, Family::Categorical] {
        let law = law(family);
        let noise = noise(&*estimator, &law, 11);
        let want: Vec<f64> = draws(&law, &noise[0])
            .iter()
            .flat_map(|draw| draw.estimate(|z| eta * cost_at(&draw.softened(z, temperature))))
            .collect();
        let got = estimator.gradient(noise, &law, cost);
        let what = format!("{family:?}");
        assert_close(&what, &values(got.expect("valid")), &want, 1e-8);
    }
}

/// `v . tanh(W [x, z] + b) + a` from the numbers of the module in its order.
fn network(weights: &[f64], input: &[f64], hidden: usize) -> f64 {
    let (w, rest) = weights.split_at(input.len() * hidden);
    let (b, rest) = rest.split_at(hidden);
    let (v, a) = rest.split_at(hidden);
    let unit = |h: usize| {
        let sum: f64 = (0..input.len()).map(|i| input[i] * w[i * hidden + h]).sum();
        (sum + b[h]).tanh() * v[h]
    };
    (0..hidden).map(unit).sum::<f64>() + a[0]
}

struct Numbers(Vec<f64>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(values(param.val()));
    }
}

/// The gradient of the model is the formula with the network as a constant; the input of the
/// network is a constant, and so is the cost: its own parameter has the gradient of the mean cost.
#[test]
fn relax_is_its_formula_and_nothing_leaks() {
    const HIDDEN: usize = 3;
    let estimator = build("relax:hidden=3");
    for family in [Family::Bernoulli, Family::Categorical] {
        let law = law(family);
        let state = state_of(&*estimator, &law);
        let mut numbers = Numbers(Vec::new());
        state.visit(&mut numbers);
        let weights = numbers.0;
        let noise = noise(&*estimator, &law, 12);
        let x = values(input());
        let want: Vec<f64> = draws(&law, &noise[0])
            .iter()
            .enumerate()
            .flat_map(|(b, draw)| {
                let control = |z: &[f64]| {
                    let input = [&x[2 * b..][..2], z].concat();
                    network(&weights, &input, HIDDEN)
                };
                draw.estimate(control)
            })
            .collect();
        let tracked = Tensor::from_inner(input()).require_grad();
        let scale = Tensor::from_inner(tensor::<1>(&[1.0], [1], DType::F64)).require_grad();
        let bound = estimator
            .bind(&state, Some(tracked.clone()))
            .expect("its own");
        let leaf = law.leaf();
        let estimate = bound.estimate(noise, &leaf, |z| cost(z) * scale.clone().unsqueeze::<2>());
        let estimate = estimate.expect("valid");
        let mean = values(estimate.values.mean());
        let grads = estimate.surrogate.backward();
        let got = values(leaf.natural().grad(&grads).expect("a gradient") * BATCH as f64);
        assert_close(&format!("{family:?}"), &got, &want, 1e-8);
        assert!(tracked.grad(&grads).is_none(), "the input is a constant");
        assert_close(
            "model",
            &values(scale.grad(&grads).expect("own")),
            &mean,
            1e-12,
        );
    }
}

/// The state's variance does not change the model's gradient: tuned or not, it is the same at the
/// same numbers.
#[test]
fn tuning_does_not_touch_the_model() {
    let law = law(Family::Bernoulli);
    for (tuned, fixed) in [
        ("rebar", "rebar:tune=none,eta=1.07,temperature=TAU"),
        ("double-cv:alpha=-1", "double-cv:alpha=-0.93,tune=off"),
        ("muprop:coefficients=learned", "muprop"),
    ] {
        let tau = (0.5_f64.ln() + 0.07).exp().to_string();
        let (tuned, fixed) = (build(tuned), build(&fixed.replace("TAU", &tau)));
        let mut state = state_of(&*tuned, &law);
        if tuned.entry().id == "muprop" {
            // Back to the unit coefficients.
            state = state.map(&mut Add {
                at: None,
                by: -0.07,
            });
        }
        let noise = noise(&*fixed, &law, 13);
        let scale = Tensor::from_inner(tensor::<1>(&[1.0], [1], DType::F64)).require_grad();
        let gradients = |estimator: &dyn Estimator| {
            let leaf = law.leaf();
            let estimate = estimator.estimate(noise.clone(), &leaf, |z| {
                cost(z) * scale.clone().unsqueeze::<2>()
            });
            let grads = estimate.expect("valid").surrogate.backward();
            let mut all = values(leaf.natural().grad(&grads).expect("a gradient"));
            all.extend(values(scale.grad(&grads).expect("a gradient")));
            all
        };
        let bound = tuned.bind(&state, None).expect("its own");
        let what = tuned.spec().to_string();
        assert_close(&what, &gradients(&*bound), &gradients(&*fixed), 1e-12);
    }
}

#[test]
fn rebar_without_its_control_variate_is_reinforce() {
    let rebar = build("rebar:tune=none,eta=0,samples=3");
    let reinforce = build("reinforce:samples=3");
    for family in [Family::Bernoulli, Family::Categorical] {
        let law = law(family);
        let noise = noise(&*rebar, &law, 14);
        let estimate = rebar.estimate(noise.clone(), &law, cost);
        let hard = estimate.expect("valid").samples;
        let own = rebar.gradient(noise, &law, cost);
        let other = reinforce.gradient(hard, &law, cost);
        let (own, other) = (values(own.expect("valid")), values(other.expect("valid")));
        assert_close(&format!("{family:?}"), &own, &other, 1e-13);
    }
}

/// One estimate is exact on a linear cost, whatever was drawn.
#[test]
fn linear_costs_have_no_variance() {
    let linear = |z: Tensor<4>| {
        let [_, _, d, k] = z.dims();
        let a: Vec<f64> = (0..d * k).map(direction).collect();
        let a = tensor::<4>(&a, [1, 1, d, k], z.dtype());
        (z * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]) + 0.7
    };
    let families = [
        Family::Bernoulli,
        Family::Categorical,
        Family::Poisson,
        Family::Binomial { trials: 4 },
        Family::NegativeBinomial { dispersion: 2.5 },
    ];
    for (spec, families) in [
        ("muprop", &families[..]),
        ("double-cv:alpha=-1,tune=off", &families[..1]),
    ] {
        for family in families {
            let (estimator, law) = (build(spec), law(*family));
            let [_, d, k] = law.dims();
            let a: Vec<f64> = (0..BATCH * d * k).map(|i| direction(i % (d * k))).collect();
            let exact = law.chain(tensor::<3>(&a, [BATCH, d, k], DType::F64));
            for seed in 0..20 {
                let noise = noise(&*estimator, &law, seed);
                let got = estimator.gradient(noise, &law, linear);
                let what = format!("{spec}, {family:?}");
                assert_close(
                    &what,
                    &values(got.expect("valid")),
                    &values(exact.clone()),
                    1e-12,
                );
            }
        }
    }
}

/// MuProp learns the square of its signal: coefficients and baseline, by central differences of the
/// formula in scalar code.
#[test]
fn muprop_learns_its_signal() {
    const HIDDEN: usize = 3;
    let estimator = build("muprop:coefficients=learned,baseline=learned,hidden=3,samples=2");
    let law = law(Family::Bernoulli);
    let state = state_of(&*estimator, &law);
    let got = learned_gradient(&*estimator, &state, &law, 15);
    let mut numbers = Numbers(Vec::new());
    state.visit(&mut numbers);
    let (z, natural, x) = (
        values(noise(&*estimator, &law, 15).remove(0)),
        values(law.natural()),
        values(input()),
    );
    let loss = |numbers: &[f64]| {
        // The network comes before the coefficients.
        let (weights, coefficients) = numbers.split_at(numbers.len() - 2);
        let signal = |draw: usize, b: usize| {
            let z = &z[(draw * BATCH + b) * 2..][..2];
            let mean: Vec<f64> = natural[2 * b..][..2].iter().map(|x| sigmoid(*x)).collect();
            let slope = |i: usize| {
                let moved = |by: f64| {
                    let mut mean = mean.clone();
                    mean[i] += by;
                    cost_at(&mean)
                };
                (moved(1e-6) - moved(-1e-6)) / 2e-6
            };
            let linear: f64 = (0..2).map(|i| slope(i) * (z[i] - mean[i])).sum();
            cost_at(z)
                - coefficients[0] * cost_at(&mean)
                - coefficients[1] * linear
                - network(weights, &x[2 * b..][..2], HIDDEN)
        };
        let all = (0..2 * BATCH).map(|i| signal(i / BATCH, i % BATCH).powi(2));
        all.sum::<f64>() / (2 * BATCH) as f64
    };
    let difference = |i: usize| {
        let moved = |by: f64| {
            let mut numbers = numbers.0.clone();
            numbers[i] += by;
            loss(&numbers)
        };
        (moved(1e-4) - moved(-1e-4)) / 2e-4
    };
    let want: Vec<f64> = (0..got.len()).map(difference).collect();
    assert_close("muprop", &got, &want, 1e-7);
}

/// The temperature is tuned, and paid for, at the steps that `every` divides.
#[test]
fn the_temperature_is_tuned_now_and_then() {
    let law = law(Family::Bernoulli);
    for spec in [
        "rebar:every=3,samples=2",
        "relax:control=sum,every=3,hidden=2,samples=2",
    ] {
        let estimator = build(spec);
        let state = state_of(&*estimator, &law);
        for step in 0..7 {
            let now = estimator.at_step(step).expect("a step");
            let price = now.price(&law, 2);
            let due = step % 3 == 0;
            assert_eq!(price.evaluations, if due { 6 } else { 4 }, "{spec}");
            assert_eq!(price.gradients, if due { 4 } else { 2 }, "{spec}");
            let bound = now.bind(&state, Some(input())).expect("its own");
            let estimate = bound.estimate(Key::new(1), &law.leaf(), cost);
            let estimate = estimate.expect("valid");
            let grads = estimate.surrogate.backward();
            assert_eq!(estimate.counts.evaluations(), price.evaluations, "{spec}");
            assert_eq!(estimate.counts.gradients(), price.gradients, "{spec}");
            let temperature = state.layers[0]
                .log_temperature
                .as_ref()
                .expect("a part")
                .val();
            assert_eq!(
                temperature.grad(&grads).is_some(),
                due,
                "{spec}, step {step}"
            );
        }
    }
}
