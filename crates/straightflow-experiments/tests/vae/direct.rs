//! The direct dependence of the cost on the encoder, on models that can be enumerated: at hard
//! samples it may be dropped, for relaxations and bounds it must not be.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::{EstimatorExt, Spec};
use straightflow::objective::{Objective, ObjectiveKind};
use straightflow_experiments::vae::{Architecture, Centring, Direct, Elbo, Layout, Prior, Vae};

use super::scalar::{Parameters, Scalar, all_bits, images, layout, model, seen, tensor};

/// Gradients of all parameters, in the order of [`Parameters`]; zeros where there is none.
fn gradients(model: &Vae, gradients: &Gradients) -> Parameters {
    struct Collect<'a>(&'a Gradients, Vec<Vec<f64>>);
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let count = value.dims().iter().product();
            let gradient = value.grad(self.0).map(|g| {
                let data = g.into_data();
                let values = data.as_slice::<f32>().expect("f32");
                values.iter().map(|x| f64::from(*x)).collect()
            });
            self.1.push(gradient.unwrap_or_else(|| vec![0.0; count]));
        }
    }
    let mut collect = Collect(gradients, Vec::new());
    model.visit(&mut collect);
    Parameters(collect.1)
}

/// Adds a weighted set of gradients.
fn add(sum: &mut Parameters, other: &Parameters, weight: f64) {
    for (sum, other) in sum.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
        *sum += weight * other;
    }
}

/// Central differences of a function of a model's parameters.
fn differences(scalar: &Scalar, f: impl Fn(&Scalar) -> f64) -> Parameters {
    const REACH: f64 = 1e-5;
    let mut result = scalar.parameters.clone();
    let mut moved = Scalar {
        layout: scalar.layout,
        parameters: scalar.parameters.clone(),
    };
    for (part, values) in scalar.parameters.0.iter().enumerate() {
        for (i, value) in values.iter().enumerate() {
            let mut at = |x: f64| {
                moved.parameters.0[part][i] = x;
                f(&moved)
            };
            result.0[part][i] = (at(value + REACH) - at(value - REACH)) / (2.0 * REACH);
            moved.parameters.0[part][i] = *value;
        }
    }
    // The prior is fixed, so nobody asks for its gradient.
    assert_eq!(scalar.layout.prior, Prior::Fixed);
    result.0.last_mut().expect("the prior").fill(0.0);
    result
}

/// The largest difference of two gradients.
fn distance(a: &Parameters, b: &Parameters) -> f64 {
    let pairs = a.0.iter().flatten().zip(b.0.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The mean over the images of the exact negative ELBO.
fn exact_cost(scalar: &Scalar) -> f64 {
    let codes = all_bits(scalar.layout.arch.layers(), scalar.layout.dims[0]);
    let mut sum = 0.0;
    for image in images() {
        for z in &codes {
            let input = seen(image);
            sum += scalar.log_posterior(&input, z).exp() * scalar.cost(&image, &input, z);
        }
    }
    sum / images().len() as f64
}

struct Case {
    layout: Layout,
    model: Vae,
    scalar: Scalar,
    x: Tensor<2>,
    input: Tensor<2>,
}

impl Case {
    fn new(arch: Architecture) -> Self {
        let device = Device::flex().autodiff();
        let layout = layout(arch, Family::Bernoulli, Centring::Signed);
        let model = model(layout, &device);
        let scalar = Scalar::new(layout, &model);
        let [x, input] = [images(), images().map(seen)].map(|x| tensor(x, &device).inner());
        Self {
            layout,
            model,
            scalar,
            x,
            input,
        }
    }

    fn elbo(&self, direct: Direct) -> Elbo<'_> {
        Elbo::new(&self.model, self.x.clone(), self.input.clone(), direct)
    }

    /// The gradients of an estimate with given noise.
    fn estimate(&self, spec: &str, elbo: &Elbo, noise: Tensor<4>) -> Parameters {
        let estimator = spec.parse::<Spec>().and_then(|spec| spec.build());
        let estimate = estimator
            .and_then(|e| e.estimate_objective(vec![noise], elbo))
            .expect("an estimate");
        gradients(&self.model, &estimate.surrogate.backward())
    }

    /// The same sample for both images, `[n, 2, d, 1]`.
    fn noise(&self, draws: &[&[f64]]) -> Tensor<4> {
        let d = self.layout.dims[0];
        let rows = draws.iter().flat_map(|z| [*z, *z]).flatten();
        let values: Vec<f32> = rows.map(|z| *z as f32).collect();
        Tensor::<1>::from_floats(values.as_slice(), &Device::flex()).reshape([draws.len(), 2, d, 1])
    }
}

/// Gradients are of order one, and computed in single precision.
const CLOSE: f64 = 2e-5;

#[test]
fn the_exact_gradient_does_not_depend_on_the_direct_term() {
    for arch in Architecture::ALL {
        let case = Case::new(arch);
        let expected = differences(&case.scalar, exact_cost);
        for direct in [Direct::Dropped, Direct::Kept] {
            let estimator = Spec::new("enumerate").build().expect("an estimator");
            let elbo = case.elbo(direct);
            let key = straightflow::Key::new(1);
            let estimate = estimator
                .estimate_objective(key, &elbo)
                .expect("an estimate");
            let got = gradients(&case.model, &estimate.surrogate.backward());
            let distance = distance(&got, &expected);
            assert!(distance < CLOSE, "{arch:?}, {direct:?}: {distance}");
        }
    }
}

#[test]
fn at_hard_samples_the_direct_term_has_no_expectation() {
    for spec in ["reinforce", "straight-through"] {
        let mut case = Case::new(Architecture::Linear);
        let mut means = Vec::new();
        let image = images()[0];
        case.x = case.x.narrow(0, 0, 1);
        case.input = case.input.narrow(0, 0, 1);
        for direct in [Direct::Dropped, Direct::Kept] {
            let mut mean = differences(&case.scalar, |_| 0.0);
            for z in all_bits(1, 3) {
                let weight = case.scalar.log_posterior(&seen(image), &z).exp();
                let noise = case.noise(&[&z[0]]).narrow(1, 0, 1);
                let estimate = case.estimate(spec, &case.elbo(direct), noise);
                add(&mut mean, &estimate, weight);
            }
            means.push(mean);
        }
        let distance = distance(&means[0], &means[1]);
        assert!(distance < CLOSE, "{spec}: {distance}");
    }
}

#[test]
fn a_relaxation_needs_the_direct_term() {
    let case = Case::new(Architecture::Linear);
    const TEMPERATURE: f64 = 0.5;
    let u = [0.2, 0.55, 0.9];
    let relaxed = |scalar: &Scalar| {
        let cost = |image: [f64; 4]| {
            let input = seen(image);
            let logits = scalar.posterior(&input, &[]);
            let soft = logits.iter().zip(u).map(|(logit, u): (&f64, f64)| {
                let perturbed = logit + (u / (1.0 - u)).ln();
                1.0 / (1.0 + (-perturbed / TEMPERATURE).exp())
            });
            scalar.cost(&image, &input, &vec![soft.collect()])
        };
        images().map(cost).iter().sum::<f64>() / 2.0
    };
    let expected = differences(&case.scalar, relaxed);
    let spec = format!("gumbel-softmax:temperature={TEMPERATURE}");
    let of = |direct| {
        let estimate = case.estimate(&spec, &case.elbo(direct), case.noise(&[&u]));
        distance(&estimate, &expected)
    };
    let (kept, dropped) = (of(Direct::Kept), of(Direct::Dropped));
    assert!(kept < CLOSE, "kept: {kept}");
    assert!(dropped > 0.05, "dropped, and nobody noticed: {dropped}");
}

#[test]
fn a_bound_needs_the_direct_term() {
    let mut case = Case::new(Architecture::Linear);
    let image = images()[0];
    case.x = case.x.narrow(0, 0, 1);
    case.input = case.input.narrow(0, 0, 1);
    let codes = all_bits(1, 3);
    let weights = |scalar: &Scalar| -> Vec<(f64, f64)> {
        let input = seen(image);
        let of = |z| {
            let q = scalar.log_posterior(&input, z).exp();
            (q, (-scalar.cost(&image, &input, z)).exp())
        };
        codes.iter().map(of).collect()
    };
    let exact_bound = |scalar: &Scalar| {
        let weights = weights(scalar);
        let mut sum = 0.0;
        for (p, v) in &weights {
            for (q, w) in &weights {
                sum -= p * q * ((v + w) / 2.0).ln();
            }
        }
        sum
    };
    let expected = differences(&case.scalar, exact_bound);
    let of = |direct| {
        let mut mean = differences(&case.scalar, |_| 0.0);
        let weights = weights(&case.scalar);
        for (i, first) in codes.iter().enumerate() {
            for (j, second) in codes.iter().enumerate() {
                let elbo = case.elbo(direct).of_kind(ObjectiveKind::Bound);
                let noise = case.noise(&[&first[0], &second[0]]).narrow(1, 0, 1);
                let estimate = case.estimate("vimco:samples=2", &elbo, noise);
                add(&mut mean, &estimate, weights[i].0 * weights[j].0);
            }
        }
        distance(&mean, &expected)
    };
    let (kept, dropped) = (of(Direct::Kept), of(Direct::Dropped));
    assert!(kept < CLOSE, "kept: {kept}");
    assert!(dropped > 0.01, "dropped, and nobody noticed: {dropped}");
}

/// Control variates need the true gradient with respect to the samples, also where the direct term
/// is dropped: the lower samples move the law of the upper ones, and with it `log q`.
#[test]
fn the_frozen_cost_has_the_gradient_by_relaxed_samples_of_both_layers() {
    let case = Case::new(Architecture::TwoLayer);
    let device = Device::flex().autodiff();
    let soft = [[0.3, 0.8, 0.55], [0.45, 0.1, 0.7]];
    let leaf = |z: [f64; 3]| -> Tensor<4> {
        let row = z.map(|z| z as f32);
        let rows = Tensor::<2>::from_floats([row, row], &device);
        rows.reshape([1, 2, 3, 1]).detach().require_grad()
    };
    let z = soft.map(leaf);
    let elbo = case.elbo(Direct::Dropped);
    let laws: Vec<Law> = (0..2)
        .map(|l| elbo.layer(&z[..l]).expect("a law"))
        .collect();
    let cost = elbo.frozen_cost(&z, &laws).expect("valid");
    let grads = cost.sum().backward();
    for (layer, leaf) in z.iter().enumerate() {
        let gradient = leaf.grad(&grads).expect("a gradient").into_data();
        let gradient = gradient.as_slice::<f32>().expect("f32").to_vec();
        for (place, got) in gradient.into_iter().enumerate() {
            let image = images()[place / 3];
            let at = |reach: f64| {
                let mut code: Vec<Vec<f64>> = soft.iter().map(|z| z.to_vec()).collect();
                code[layer][place % 3] += reach;
                case.scalar.cost(&image, &seen(image), &code)
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            let error = (f64::from(got) - expected).abs();
            assert!(
                error < CLOSE,
                "layer {layer}, {place}: {got}, not {expected}"
            );
        }
    }
}

/// By default the term is dropped exactly where that is right.
#[test]
fn every_estimator_has_what_fits_it() {
    use straightflow_experiments::vae::{Protocol, Settings};
    let data = Protocol::Threshold.load(None).expect("embedded data");
    let direct = |spec: &str| {
        let spec = spec.parse().expect("a specification");
        let settings = Settings::new(Architecture::Linear, spec);
        settings.config(&data).expect("valid settings").direct
    };
    for spec in [
        "straight-through",
        "arm",
        "rebar",
        "gumbel-rao",
        "straight-through-gumbel",
    ] {
        assert_eq!(direct(spec), Direct::Dropped, "{spec}");
    }
    for spec in ["gumbel-softmax", "vimco"] {
        assert_eq!(direct(spec), Direct::Kept, "{spec}");
    }
}
