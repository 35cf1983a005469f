//! The rules for several layers by hand, for fixed noise; one layer among several; what the layers
//! learn; what is refused.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Noise, REGISTRY, Stacking};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::layers::{FIRST, Stack, cost_at, direction, natural_above, slope_at, weight};
use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, leaf, tensor, values};

const BATCH: usize = 3;

fn pieces(noise: &[(&[f64], [usize; 4])]) -> Vec<Vec<Tensor<4>>> {
    let piece = |(numbers, shape): &(&[f64], [usize; 4])| vec![tensor(numbers, *shape, DType::F64)];
    noise.iter().map(piece).collect()
}

/// Uniform numbers that are not special.
fn uniform(count: usize, seed: u64) -> Vec<f64> {
    let mut numbers = vec![0.0; count];
    Key::new(seed).fill_uniform_f64(&mut numbers);
    numbers
}

fn bit(on: bool) -> f64 {
    f64::from(u8::from(on))
}

/// The lower layer's derivative goes through the upper layer's parameters as well.
#[test]
fn straight_through_follows_the_tape() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let z: Vec<f64> = uniform(2 * BATCH, 1)
        .iter()
        .map(|u| bit(*u < 0.5))
        .collect();
    let y: Vec<f64> = uniform(2 * BATCH, 2)
        .iter()
        .map(|u| bit(*u < 0.5))
        .collect();
    let shape = [1, BATCH, 2, 1];
    let noise = pieces(&[(&z, shape), (&y, shape)]);
    let estimate = build("straight-through").estimate_objective(noise, &stack);
    let want: Vec<f64> = (0..BATCH)
        .flat_map(|b| {
            let (z, y) = (&z[2 * b..][..2], &y[2 * b..][..2]);
            let slope = slope_at(&[z, y]);
            let width = |x: f64| sigmoid(x) * sigmoid(-x);
            let above: Vec<f64> = natural_above(z, 2)
                .iter()
                .enumerate()
                .map(|(j, x)| width(*x) * slope * direction(1, j))
                .collect();
            let below = (0..2).map(|i| {
                let through: f64 = (0..2).map(|j| weight(i, j) * above[j]).sum();
                width(FIRST[i]) * (slope * direction(0, i) + through)
            });
            below.chain(above.clone()).collect::<Vec<_>>()
        })
        .collect();
    assert_close(
        "gradient",
        &stack.gradient(&estimate.expect("valid")),
        &want,
        1e-12,
    );
}

/// The antithetic pair of uniform numbers.
fn pair(natural: &[f64], u: &[f64]) -> [Vec<f64>; 2] {
    let first = |(x, u): (&f64, &f64)| bit(*u > sigmoid(-x));
    let second = |(x, u): (&f64, &f64)| bit(*u < sigmoid(*x));
    [
        natural.iter().zip(u).map(first).collect(),
        natural.iter().zip(u).map(second).collect(),
    ]
}

/// The lower layer: a pair, with an independent draw above each. The upper layer: a draw below, and
/// a pair on top of it. The noise comes in this order.
#[test]
fn arm_goes_layer_by_layer() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let (u, v) = (uniform(2 * BATCH, 3), uniform(2 * BATCH, 4));
    let above: Vec<f64> = uniform(4 * BATCH, 5)
        .iter()
        .map(|u| bit(*u < 0.5))
        .collect();
    let below: Vec<f64> = uniform(2 * BATCH, 6)
        .iter()
        .map(|u| bit(*u < 0.5))
        .collect();
    let shape = [1, BATCH, 2, 1];
    let noise = pieces(&[
        (&u, shape),
        (&above, [1, 2 * BATCH, 2, 1]),
        (&below, shape),
        (&v, shape),
    ]);
    let estimate = build("arm").estimate_objective(noise, &stack);
    let estimate = estimate.expect("valid");
    let own = |numbers: &[f64], b: usize| numbers[2 * b..][..2].to_vec();
    let (mut want, mut costs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for b in 0..BATCH {
        let lower = pair(&FIRST[..2], &own(&u, b));
        let cost = |draw: usize| cost_at(&[&lower[draw], &own(&above, draw * BATCH + b)]);
        let difference = cost(0) - cost(1);
        (0..2).for_each(|draw| costs[draw].push(cost(draw)));
        want.extend(own(&u, b).iter().map(|u| difference * (u - 0.5)));
        let below = own(&below, b);
        let upper = pair(&natural_above(&below, 2), &own(&v, b));
        let difference = cost_at(&[&below, &upper[0]]) - cost_at(&[&below, &upper[1]]);
        want.extend(own(&v, b).iter().map(|v| difference * (v - 0.5)));
    }
    assert_close(
        "values",
        &values(estimate.values.clone()),
        &costs.concat(),
        1e-14,
    );
    assert_eq!(estimate.counts.evaluations(), 4);
    assert_eq!(estimate.samples.len(), 2);
    assert_close("gradient", &stack.gradient(&estimate), &want, 1e-12);
}

/// The expansion is about the means of a mean-field pass, and its slope is a total one: the means
/// above follow that of the lower layer. Each draw by hand, because every slope has the right mean.
#[test]
fn muprop_expands_about_a_mean_field_pass() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let bits = |seed| -> Vec<f64> {
        let u = uniform(2 * BATCH, seed);
        u.iter().map(|u| bit(*u < 0.5)).collect()
    };
    let (z, y) = (bits(31), bits(32));
    let shape = [1, BATCH, 2, 1];
    let noise = pieces(&[(&z, shape), (&y, shape)]);
    let estimate = build("muprop").estimate_objective(noise, &stack);
    let mean = |natural: &[f64]| -> Vec<f64> { natural.iter().map(|x| sigmoid(*x)).collect() };
    let width = |p: f64| p * (1.0 - p);
    let below = mean(&FIRST[..2]);
    let above = mean(&natural_above(&below, 2));
    let slope = slope_at(&[&below, &above]);
    let slopes: [Vec<f64>; 2] = [
        (0..2)
            .map(|i| {
                let through = |j: usize| width(above[j]) * weight(i, j) * direction(1, j);
                slope * (direction(0, i) + through(0) + through(1))
            })
            .collect(),
        (0..2).map(|j| slope * direction(1, j)).collect(),
    ];
    let mut want = Vec::new();
    for b in 0..BATCH {
        let (z, y) = (&z[2 * b..][..2], &y[2 * b..][..2]);
        let given = [mean(&FIRST[..2]), mean(&natural_above(z, 2))];
        for (layer, (sample, centre)) in [(z, &below), (y, &above)].into_iter().enumerate() {
            let slopes = &slopes[layer];
            let linear: f64 = (0..2).map(|i| slopes[i] * (sample[i] - centre[i])).sum();
            let signal = cost_at(&[z, y]) - cost_at(&[&below, &above]) - linear;
            let own = &given[layer];
            want.extend((0..2).map(|i| signal * (sample[i] - own[i]) + width(own[i]) * slopes[i]));
        }
    }
    assert_close(
        "gradient",
        &stack.gradient(&estimate.expect("valid")),
        &want,
        1e-12,
    );
}

/// `(f(b) - c) score + d/dx c(z) - d/dx c(z~)` of one layer of bits, with `c` a function of relaxed
/// bits at a temperature; the derivatives by differences.
fn rebar(
    natural: &[f64],
    u: &[f64],
    temperature: f64,
    hard_cost: f64,
    relaxed_cost: impl Fn(&[f64]) -> f64,
) -> Vec<f64> {
    let logit = |u: f64| (u / (1.0 - u)).ln();
    let soften = |z: f64| sigmoid(z / temperature);
    let free = |x: &[f64]| -> Vec<f64> {
        x.iter()
            .zip(u)
            .map(|(x, u)| soften(x + logit(*u)))
            .collect()
    };
    let conditional = |x: &[f64]| -> Vec<f64> {
        let each = |i: usize| {
            let (own, other) = (sigmoid(natural[i]), sigmoid(x[i]));
            let moved = if natural[i] + logit(u[i]) > 0.0 {
                1.0 - other + other * (u[i] - 1.0 + own) / own
            } else {
                u[i] / (1.0 - own) * (1.0 - other)
            };
            soften(x[i] + logit(moved))
        };
        (0..x.len()).map(each).collect()
    };
    let rest = hard_cost - relaxed_cost(&free(natural));
    let each = |i: usize| {
        let moved = |by: f64| {
            let mut x = natural.to_vec();
            x[i] += by;
            relaxed_cost(&free(&x)) - relaxed_cost(&conditional(&x))
        };
        let hard = bit(natural[i] + logit(u[i]) > 0.0);
        rest * (hard - sigmoid(natural[i])) + (moved(1e-5) - moved(-1e-5)) / 2e-5
    };
    (0..natural.len()).map(each).collect()
}

/// Hard below, relaxed at and above the layer, with one temperature of its own for each layer.
#[test]
fn rebar_relaxes_at_and_above_a_layer() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let (eta, tau) = ([0.7, 1.2], [0.4, 0.8]);
    let estimator = build("rebar");
    let laws = [stack.first.clone(), stack.bias.clone()];
    let laws = laws.map(|natural| Law::new(Family::Bernoulli, natural).expect("valid"));
    let device = Device::flex().autodiff();
    let shapes = StateShape::stacked(&laws, 0);
    let mut states = State::stacked(&*estimator, Key::new(1), &shapes, &device).expect("learns");
    for layer in 0..2 {
        let number = |x: f64| Param::from_tensor(leaf::<1>(&[x], [1], DType::F64));
        states.layers[layer].coefficients = Some(number(eta[layer]));
        states.layers[layer].log_temperature = Some(number(f64::ln(tau[layer])));
    }
    let bound = estimator.bind(&states, None).expect("its own");
    let (u, v) = (uniform(2 * BATCH, 7), uniform(2 * BATCH, 8));
    let shape = [1, BATCH, 2, 1];
    let noise = pieces(&[(&u, shape), (&v, shape)]);
    let estimate = bound.estimate_objective(noise, &stack);
    let logit = |u: f64| (u / (1.0 - u)).ln();
    let mut want = Vec::new();
    for b in 0..BATCH {
        let (u, v) = (&u[2 * b..][..2], &v[2 * b..][..2]);
        let harden = |x: &[f64], u: &[f64]| -> Vec<f64> {
            x.iter()
                .zip(u)
                .map(|(x, u)| bit(x + logit(*u) > 0.0))
                .collect()
        };
        let z = harden(&FIRST[..2], u);
        let natural = natural_above(&z, 2);
        let y = harden(&natural, v);
        let hard = cost_at(&[&z, &y]);
        let above = |s: &[f64]| -> Vec<f64> {
            let natural = natural_above(s, 2);
            let each = |(x, v): (&f64, &f64)| sigmoid((x + logit(*v)) / tau[1]);
            natural.iter().zip(v).map(each).collect()
        };
        let lower = |s: &[f64]| eta[0] * cost_at(&[s, &above(s)]);
        want.extend(rebar(&FIRST[..2], u, tau[0], hard, lower));
        let upper = |s: &[f64]| eta[1] * cost_at(&[&z, s]);
        want.extend(rebar(&natural, v, tau[1], hard, upper));
    }
    assert_close(
        "gradient",
        &stack.gradient(&estimate.expect("valid")),
        &want,
        1e-8,
    );
}

/// A law as the only layer.
struct Only {
    law: Law,
    kind: ObjectiveKind,
}

impl Objective<Law> for Only {
    fn layer(&self, _below: &[Tensor<4>]) -> straightflow::Result<Law> {
        Ok(self.law.clone())
    }

    fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        Ok(toy(z[0].clone(), &q[0]))
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }
}

fn toy(z: Tensor<4>, q: &Law) -> Tensor<2> {
    crate::scalar::cost(z.clone()) + q.log_prob(z) * 0.1
}

/// An objective of one layer and a closure are the same to the bit, with a key and with the noise
/// that comes from it, for every estimator in every family that it takes.
#[test]
fn one_layer_is_the_estimate_itself() {
    let mut compared = 0;
    for entry in REGISTRY {
        for law in crate::support::laws(DType::F64) {
            let estimator = build(entry.id);
            if !entry.families.contains(&law.family().kind()) {
                continue;
            }
            assert!(
                !matches!(estimator.stacking(), Stacking::Unsupported),
                "{}",
                entry.id
            );
            let shape = StateShape::of(&law, 0);
            let device = Device::flex().autodiff();
            let state = estimator.init_state(Key::new(1), shape, &device);
            let estimator = match state {
                Some(state) => estimator.bind(&state, None).expect("its own"),
                None => estimator,
            };
            let specs = estimator.noise(&law, estimator.draws());
            let noise = Noise::draw(Key::new(2), &law, &specs);
            let noise: Vec<Tensor<4>> = (0..specs.len()).map(|i| noise.get(i)).collect();
            let leaf = law.leaf();
            let only = Only {
                law: leaf.clone(),
                kind: entry.objective,
            };
            let estimate = estimator.estimate_objective(noise, &only);
            let estimate = estimate.expect(entry.id);
            let gradient = leaf.natural().grad(&estimate.surrogate.backward());
            let got = values(gradient.expect("a gradient"));

            let leaf = law.leaf();
            let single = Single::new(&leaf, (), |z, q, ()| toy(z, q)).of_kind(entry.objective);
            let single = estimator.estimate_objective(Key::new(2), &single);
            let gradient = leaf
                .law()
                .natural()
                .grad(&single.expect(entry.id).surrogate.backward());
            let want = values(gradient.expect("a gradient"));
            assert_eq!(got, want, "{}, {:?}", entry.id, law.family());
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

/// Moves one number of all states.
struct Move {
    at: usize,
    by: f64,
}

impl ModuleMapper for Move {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|x| {
            let shape = x.dims();
            let mut numbers = values(x);
            if let Some(number) = numbers.get_mut(self.at) {
                *number += self.by;
            }
            self.at = self.at.wrapping_sub(numbers.len());
            Tensor::from_inner(tensor::<D>(&numbers, shape, DType::F64)).require_grad()
        })
    }
}

struct Gradients<'a>(&'a GradientsParams, Vec<f64>);

impl ModuleVisitor for Gradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.1
            .extend(values(self.0.get::<D>(param.id).expect("a gradient")));
    }
}

/// Each layer's state has the gradient of the mean square of that layer's gradients, by central
/// differences. (A temperature also acts on the layers below, which its tuning leaves out.)
#[test]
fn each_layer_learns_its_own_variance() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let input = tensor::<2>(&uniform(BATCH * 2, 9), [BATCH, 2], DType::F64);
    let laws = [stack.first.clone(), stack.bias.clone()];
    let laws = laws.map(|natural| Law::new(Family::Bernoulli, natural).expect("valid"));
    let shapes = StateShape::stacked(&laws, 2);
    assert_eq!([shapes[0].below, shapes[1].below], [0, 2]);
    for spec in ["rebar:tune=eta,baseline=learned,hidden=2", "relax:hidden=2"] {
        let estimator = build(spec);
        let device = Device::flex().autodiff();
        let states = State::stacked(&*estimator, Key::new(1), &shapes, &device).expect("learns");
        let estimate = |states: &State| {
            let bound = estimator.bind(states, Some(input.clone()));
            let estimate = bound
                .expect("its own")
                .estimate_objective(Key::new(5), &stack);
            estimate.expect("valid")
        };
        let mut grads = estimate(&states).surrogate.backward();
        let grads = GradientsParams::from_module(&mut grads, &states);
        let mut got = Gradients(&grads, Vec::new());
        states.visit(&mut got);
        let loss = |at: usize, by: f64| {
            let gradient = stack.gradient(&estimate(&states.clone().map(&mut Move { at, by })));
            // Two means, one for each layer, over three elements of two bits.
            gradient.iter().map(|g| g * g).sum::<f64>() / 6.0
        };
        let difference = |at| (loss(at, 1e-5) - loss(at, -1e-5)) / 2e-5;
        let want: Vec<f64> = (0..got.1.len()).map(difference).collect();
        assert!(want.iter().all(|x| x.abs() > 1e-9), "{spec}: {want:?}");
        assert_close(spec, &got.1, &want, 1e-8);
    }
}

/// The samples of an estimate are those that its values belong to.
#[test]
fn samples_belong_to_the_values() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let laws = [stack.first.clone(), stack.bias.clone()];
    let laws = laws.map(|natural| Law::new(Family::Bernoulli, natural).expect("valid"));
    let shapes = StateShape::stacked(&laws, 0);
    for entry in REGISTRY {
        if !entry.families.contains(&FamilyKind::Bernoulli)
            || entry.objective == ObjectiveKind::Bound
        {
            continue;
        }
        let estimator = build(entry.id);
        let device = Device::flex().autodiff();
        let states = State::stacked(&*estimator, Key::new(1), &shapes, &device);
        let estimator = match states {
            Some(states) => estimator.bind(&states, None).expect("its own"),
            None => estimator,
        };
        let estimate = estimator.estimate_objective(Key::new(2), &stack);
        let estimate = estimate.expect(entry.id);
        let [n, batch] = estimate.values.dims();
        for samples in &estimate.samples {
            assert_eq!(samples.dims(), [n, batch, 2, 1], "{}", entry.id);
        }
        let z: Vec<Tensor<4>> = estimate.samples.clone();
        let cost = values(stack.cost(&z, &[]).expect("valid"));
        assert_close(entry.id, &values(estimate.values), &cost, 1e-14);
    }
}

/// One state for two layers, or that of another estimator, is said, never a panic.
#[test]
fn states_that_do_not_fit_a_chain_are_named() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let law = Law::new(Family::Bernoulli, stack.first.clone()).expect("valid");
    let state = |spec: &str| {
        let shape = StateShape::of(&law, 0);
        let state = build(spec).init_state(Key::new(1), shape, &Device::flex().autodiff());
        state.expect("it learns")
    };
    for spec in [
        "rebar",
        "relax",
        "relax:control=sum",
        "double-cv",
        "muprop:coefficients=learned",
    ] {
        let estimator = build(spec);
        let bound = estimator.bind(&state(spec), None).expect("its own");
        let error = bound.estimate_objective(Key::new(1), &stack).map(|_| ());
        let estimator = estimator.entry().id;
        assert_eq!(error, Err(Error::MissingState { estimator }), "{spec}");
    }
    for (spec, other) in [
        ("rebar:tune=eta", "muprop:coefficients=learned"),
        ("muprop:coefficients=learned", "double-cv"),
    ] {
        let error = build(spec).bind(&state(other), None).map(|_| ());
        assert!(matches!(error, Err(Error::ForeignState { .. })), "{spec}");
    }
    // Another width of the variable, and another batch of the conditioning input.
    let wide = leaf::<3>(&[0.0; 9], [BATCH, 3, 1], DType::F64);
    let wide = Law::new(Family::Bernoulli, wide).expect("valid");
    let bound = build("relax").bind(&state("relax"), None).expect("its own");
    let cost = |z: Tensor<4>| crate::scalar::cost(z);
    let error = bound.estimate(Key::new(1), &wide, cost).map(|_| ());
    assert!(
        matches!(error, Err(Error::ControlWidth { .. })),
        "{error:?}"
    );
    let shape = StateShape::of(&law, 2);
    let device = Device::flex().autodiff();
    let seeing = build("relax").init_state(Key::new(1), shape, &device);
    let few = tensor::<2>(&[0.0; 2], [1, 2], DType::F64);
    let bound = build("relax").bind(&seeing.expect("it learns"), Some(few));
    let error = bound.expect("its own").estimate(Key::new(1), &law, cost);
    let error = error.map(|_| ());
    assert!(matches!(error, Err(Error::InputShape { .. })), "{error:?}");
}

#[test]
fn what_has_no_rule_is_refused() {
    let stack = Stack::new(Family::Bernoulli, BATCH);
    let refused = |spec: &str, stack: &Stack| {
        let estimate = build(spec).estimate_objective(Key::new(1), stack);
        estimate.map(|_| ()).expect_err("refused")
    };
    let error = refused("second-order-st:baseline=loo,samples=2", &stack);
    assert!(matches!(error, Error::UnsupportedLayers { .. }), "{error}");
    let empty = Stack {
        layers: 0,
        ..stack.clone()
    };
    assert_eq!(refused("reinforce", &empty), Error::EmptyChain);
    let counts = Stack {
        family: Family::Poisson,
        ..stack.clone()
    };
    let error = refused("arm", &counts);
    let family = FamilyKind::Poisson;
    assert!(
        matches!(error, Error::UnsupportedFamily { family: got, .. } if got == family),
        "{error}"
    );
    let error = refused("rebar", &stack);
    let estimator = "rebar";
    assert_eq!(error, Error::MissingState { estimator });
    let error = refused("vimco:samples=2", &stack);
    assert!(
        matches!(error, Error::UnsupportedObjective { .. }),
        "{error}"
    );

    /// A second layer that forgets the draws.
    struct Short(Stack);
    impl Objective<Law> for Short {
        fn layers(&self) -> usize {
            2
        }
        fn layer(&self, _below: &[Tensor<4>]) -> straightflow::Result<Law> {
            self.0.layer(&[])
        }
        fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
            self.0.cost(z, q)
        }
    }
    let estimate =
        build("reinforce:samples=2").estimate_objective(Key::new(1), &Short(stack.clone()));
    let (layer, expected, got) = (1, 2 * BATCH, BATCH);
    let rows = Error::LayerRows {
        layer,
        expected,
        got,
    };
    assert_eq!(estimate.map(|_| ()), Err(rows));
}
