//! Debiased straight-through: golden numbers, the formula for fixed noise, its expectation and
//! variance over draws *and* choices, and what it is a special case of.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::NoiseLaw;
use straightflow::prelude::*;

use crate::debiased_scalar::{Base, By, Case};
use crate::scalar::{build, cost, cost_at, score, slopes_at, states};
use crate::support::{assert_close, laws, tensor, values};

/// Fills the tables of a state, in the order of its fields: curvatures, then residuals.
struct Fill {
    curvature: Vec<f64>,
    rms: Vec<f64>,
    visited: usize,
}

impl ModuleMapper for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Sums and weights: with weights of 1 a mean is its sum.
        let numbers: Vec<f64> = match self.visited {
            0 => self.curvature.clone(),
            1 | 3 => vec![1.0; param.val().shape().num_elements()],
            _ => self.rms.iter().map(|x| x * x).collect(),
        };
        self.visited += 1;
        param.map(|x| {
            let filled = tensor::<D>(&numbers, x.dims(), x.dtype());
            Tensor::from_inner(filled)
        })
    }
}

/// The estimator of a specification with given curvatures and root mean squares.
fn with_state(spec: &str, law: &Law, curvature: &[f64], rms: &[f64]) -> Box<dyn Estimator> {
    let estimator = build(spec);
    let shape = StateShape::of(law, 0);
    let Some(state) = estimator.init_state(Key::new(1), shape, &Device::flex().autodiff()) else {
        return estimator;
    };
    let mut fill = Fill {
        curvature: curvature.to_vec(),
        rms: rms.to_vec(),
        visited: if state.layers[0].curvature.is_some() {
            0
        } else {
            2
        },
    };
    let state = state.map(&mut fill);
    estimator.bind(&state, None).expect("its own")
}

/// One line of a batch: a draw, the uniform number of its choice and the sides of its steps.
struct Row {
    z: Vec<f64>,
    u: f64,
    down: Vec<bool>,
    probability: f64,
}

fn gradients(
    estimator: &dyn Estimator,
    law: &Law,
    rows: &[Row],
    cost: fn(Tensor<4>) -> Tensor<2>,
) -> Vec<Vec<f64>> {
    let [_, d, k] = law.dims();
    let batch = rows.len();
    let all = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
    let column = |x: Vec<f64>, d, k| tensor::<4>(&x, [1, batch, d, k], DType::F64);
    let z = rows.iter().flat_map(|row| row.z.clone()).collect();
    let u = rows.iter().map(|row| row.u).collect();
    let mut noise = vec![column(z, d, k), column(u, 1, 1)];
    if let Family::Binomial { trials } = law.family() {
        // Half way into the share of the side.
        let side = |row: &Row| -> Vec<f64> {
            let sides = row.z.iter().zip(&row.down).map(|(z, down)| {
                let share = z / f64::from(trials);
                if *down {
                    0.5 * share
                } else {
                    0.5 + 0.5 * share
                }
            });
            sides.collect()
        };
        noise.push(column(rows.iter().flat_map(side).collect(), d, 1));
    }
    let gradient = estimator.gradient(noise, &all, cost);
    let gradient = values(gradient.expect("valid"));
    gradient.chunks(d * k).map(<[f64]>::to_vec).collect()
}

/// All draws, sides and choices of a case, with their probabilities.
fn rows(case: &Case, law: &Law) -> Vec<Row> {
    let mut rows = Vec::new();
    for (z, p) in states(law) {
        if p < 1e-16 {
            continue;
        }
        for (down, q) in sides(case, &z) {
            for (u, length) in case.choices(&z, &down) {
                rows.push(Row {
                    z: z.clone(),
                    u,
                    down: down.clone(),
                    probability: p * q * length,
                });
            }
        }
    }
    rows
}

fn sides(case: &Case, z: &[f64]) -> Vec<(Vec<bool>, f64)> {
    let Family::Binomial { trials } = case.family else {
        return vec![(vec![false; z.len()], 1.0)];
    };
    z.iter().fold(vec![(Vec::new(), 1.0)], |all, z| {
        let share = z / f64::from(trials);
        let both = all.into_iter().flat_map(|(sides, p): (Vec<bool>, f64)| {
            [(true, share), (false, 1.0 - share)]
                .map(|(down, q)| ([&sides[..], &[down]].concat(), p * q))
        });
        both.filter(|(_, p)| *p > 0.0).collect()
    })
}

fn mean(rows: &[Row], gradients: &[Vec<f64>]) -> Vec<f64> {
    let weights = rows.iter().map(|row| row.probability);
    crate::scalar::weighted_sum(weights.zip(gradients))
}

/// The trace of the covariance.
fn variance(rows: &[Row], gradients: &[Vec<f64>]) -> f64 {
    let mean = mean(rows, gradients);
    let of = |(row, g): (&Row, &Vec<f64>)| {
        let squares = g.iter().zip(&mean).map(|(g, m)| (g - m).powi(2));
        row.probability * squares.sum::<f64>()
    };
    rows.iter().zip(gradients).map(of).sum()
}

const LOGITS: [f64; 3] = [0.4, -0.8, 1.1];
const EXACT: [f64; 3] = [0.290349713175, -0.264257659656, 0.144609854153];
/// Bad on purpose: the best is about (.050, .192, .021).
const CURVATURE: [f64; 3] = [-0.2, -0.5, 0.1];

/// `sin(1.3 t + .2) + t^2 / 2 + .6 b0 b2`, `t = .7 b0 - 1.1 b1 + .4 b2`.
fn golden_cost(z: Tensor<4>) -> Tensor<2> {
    let a = tensor::<4>(&[0.7, -1.1, 0.4], [1, 1, 3, 1], DType::F64);
    let t = (z.clone() * a).sum_dim(2);
    let pair = z.clone().narrow(2, 0, 1) * z.narrow(2, 2, 1) * 0.6;
    let f = (t.clone() * 1.3 + 0.2).sin() + t.square() * 0.5 + pair;
    f.squeeze_dims(&[2, 3])
}

fn golden_cost_at(z: &[f64]) -> f64 {
    let t = 0.7 * z[0] - 1.1 * z[1] + 0.4 * z[2];
    (1.3 * t + 0.2).sin() + 0.5 * t * t + 0.6 * z[0] * z[2]
}

fn golden_slopes(z: &[f64]) -> Vec<f64> {
    let t = 0.7 * z[0] - 1.1 * z[1] + 0.4 * z[2];
    let by_t = 1.3 * (1.3 * t + 0.2).cos() + t;
    vec![
        0.7 * by_t + 0.6 * z[2],
        -1.1 * by_t,
        0.4 * by_t + 0.6 * z[0],
    ]
}

fn golden_case(flips: usize, h: [f64; 3]) -> (Case, Law) {
    let law = Law::new(Family::Bernoulli, tensor(&LOGITS, [1, 3, 1], DType::F64)).expect("valid");
    let case = Case {
        family: Family::Bernoulli,
        k: 1,
        natural: LOGITS.to_vec(),
        cost: golden_cost_at,
        slopes: golden_slopes,
        base: Base::StraightThrough,
        by: By::Weight,
        flips,
        // A curvature counts with the sign of the step.
        curvature: h.iter().flat_map(|h| [*h, -h]).collect(),
        rms: vec![1.0; 6],
    };
    (case, law)
}

/// Independent numbers: means, variances and one estimate.
#[test]
fn golden_numbers() {
    for (spec, flips, h, want) in [
        ("debiased-st:preset=stateless", 1, [0.0; 3], 0.043438331787),
        (
            "debiased-st:preset=stateless,flips=2",
            2,
            [0.0; 3],
            0.022967049452,
        ),
        ("debiased-st:choice=variance", 1, CURVATURE, 0.090112228635),
    ] {
        let (case, law) = golden_case(flips, h);
        let estimator = with_state(spec, &law, &case.curvature, &case.rms);
        let rows = rows(&case, &law);
        let gradients = gradients(estimator.as_ref(), &law, &rows, golden_cost);
        assert_close(spec, &mean(&rows, &gradients), &EXACT, 1e-11);
        assert_close(spec, &[variance(&rows, &gradients)], &[want], 1e-11);
    }
    let (case, law) = golden_case(1, CURVATURE);
    let chances = case.chances(&[1.0, 0.0, 1.0], &[false; 3]);
    let estimator = with_state(
        "debiased-st:choice=variance",
        &law,
        &case.curvature,
        &case.rms,
    );
    let row = Row {
        z: vec![1.0, 0.0, 1.0],
        u: chances[0] + 0.5 * chances[1],
        down: Vec::new(),
        probability: 1.0,
    };
    let estimate = gradients(estimator.as_ref(), &law, &[row], golden_cost).remove(0);
    let want = [0.364272801186, -0.206028064422, 0.170362703674];
    assert_close("estimate", &estimate, &want, 1e-11);
}

/// r = 2, m = (1.5, 3), f = sigmoid(.5 z0 - .3 z1 - 1).
#[test]
fn golden_numbers_of_a_negative_binomial() {
    fn f(z: Tensor<4>) -> Tensor<2> {
        let a = tensor::<4>(&[0.5, -0.3], [1, 1, 2, 1], DType::F64);
        let t = (z * a).sum_dim(2) - 1.0;
        burn::tensor::activation::sigmoid(t).squeeze_dims(&[2, 3])
    }
    fn at(z: &[f64]) -> f64 {
        crate::scalar::sigmoid(0.5 * z[0] - 0.3 * z[1] - 1.0)
    }
    fn slopes(z: &[f64]) -> Vec<f64> {
        let p = at(z);
        vec![0.5 * p * (1.0 - p), -0.3 * p * (1.0 - p)]
    }
    let family = Family::NegativeBinomial { dispersion: 2.0 };
    let natural = [1.5f64.ln(), 3f64.ln()];
    let law = Law::new(family, tensor(&natural, [1, 2, 1], DType::F64)).expect("valid");
    let case = Case {
        family,
        k: 1,
        natural: natural.to_vec(),
        cost: at,
        slopes,
        base: Base::StraightThrough,
        by: By::Weight,
        flips: 1,
        curvature: vec![0.0; 4],
        rms: vec![1.0; 4],
    };
    let rows = rows(&case, &law);
    let estimator = build("debiased-st:preset=stateless");
    let gradients = gradients(estimator.as_ref(), &law, &rows, f);
    let want = [0.138630318738, -0.118098944435];
    assert_close("mean", &mean(&rows, &gradients), &want, 1e-10);
    assert_close(
        "variance",
        &[variance(&rows, &gradients)],
        &[0.010271250347],
        1e-10,
    );
}

/// A law of each family with two coordinates, or three bits.
fn small() -> Vec<Law> {
    let law = |family, natural: &[f64], k| {
        let d = natural.len() / k;
        Law::new(family, tensor(natural, [1, d, k], DType::F64)).expect("valid")
    };
    vec![
        law(Family::Bernoulli, &[-1.3, 0.6, 2.1], 1),
        law(Family::Categorical, &[0.3, -1.0, 0.9, 0.2, 0.0, -1.4], 3),
        law(Family::Binomial { trials: 3 }, &[-0.4, 1.1], 1),
        law(Family::Poisson, &[-0.4, 0.3], 1),
        law(
            Family::NegativeBinomial { dispersion: 2.5 },
            &[-1.2, -0.3],
            1,
        ),
    ]
}

/// Every base, choice and number of flips, with tables that nobody would learn: the library's
/// estimate is the formula's for each draw and each choice, the mean over all of them is the exact
/// gradient, and the variance is that of all differences plus the closed form.
#[test]
fn every_configuration_is_the_formula_and_its_mean_the_gradient() {
    let bases = [
        ("straight-through", Base::StraightThrough),
        ("second-order-st", Base::SecondOrder),
        ("none", Base::None),
    ];
    let choices = [
        ("variance", By::Weight),
        ("uniform", By::Nothing),
        ("learned", By::Learned),
    ];
    for law in small() {
        let [_, d, k] = law.dims();
        let exact = states(&law)
            .into_iter()
            .fold(vec![0.0; d * k], |sum, (z, p)| {
                let score = score(&law, &z);
                let terms = sum.iter().zip(score);
                terms.map(|(sum, s)| sum + p * cost_at(&z) * s).collect()
            });
        let table = d * k.max(2) * k;
        for (name, base) in bases {
            for (choice, by) in choices {
                for flips in [1, 2] {
                    for learned in ["off", "learned"] {
                        let spec = format!(
                            "debiased-st:base={name},choice={choice},curvature={learned},flips={flips}"
                        );
                        let on = f64::from(u8::from(learned == "learned"));
                        let h = |i: usize| 0.4 * on * (1.7 * i as f64 + 0.3).sin();
                        let rms = |i: usize| 0.7 + 0.5 * (2.3 * i as f64).cos();
                        let case = Case {
                            family: law.family(),
                            k,
                            natural: values(law.natural()),
                            cost: cost_at,
                            slopes: slopes_at,
                            base,
                            by,
                            flips,
                            curvature: (0..table).map(h).collect(),
                            rms: (0..table).map(rms).collect(),
                        };
                        let what = format!("{spec}, {:?}", law.family());
                        let estimator = with_state(&spec, &law, &case.curvature, &case.rms);
                        let rows = rows(&case, &law);
                        let got = gradients(estimator.as_ref(), &law, &rows, cost);
                        for (row, got) in rows.iter().zip(&got) {
                            let want = case.estimate(&row.z, &row.down, row.u);
                            assert_close(&what, got, &want, 1e-11);
                        }
                        assert_close(&what, &mean(&rows, &got), &exact, 1e-11);
                        if flips == 1 {
                            check_variance(&what, &case, &law, &rows, &got);
                        }
                    }
                }
            }
        }
    }
}

/// The variance of all differences together, plus what the choice of one of them adds.
fn check_variance(what: &str, case: &Case, law: &Law, rows: &[Row], gradients: &[Vec<f64>]) {
    let (mut square, mut mean, mut excess) = (0.0, vec![0.0; gradients[0].len()], 0.0);
    for (z, p) in states(law).into_iter().filter(|(_, p)| *p > 1e-16) {
        for (down, q) in sides(case, &z) {
            let all = case.difference(&z, &down);
            square += p * q * all.iter().map(|g| g * g).sum::<f64>();
            mean.iter_mut().zip(&all).for_each(|(m, g)| *m += p * q * g);
            excess += p * q * case.excess(&z, &down);
        }
    }
    let of_differences = square - mean.iter().map(|m| m * m).sum::<f64>();
    let want = of_differences + excess;
    assert_close(what, &[variance(rows, gradients)], &[want], 1e-9);
}

/// As many flips as moves are finite differences, for the same draws; their bases cancel.
#[test]
fn all_flips_are_finite_differences() {
    for law in laws(DType::F64) {
        let [_, d, k] = law.dims();
        let reference = FiniteDifference::default();
        let specs = reference.noise(&law, 3);
        if specs.iter().any(|spec| spec.law == NoiseLaw::Weight) {
            continue; // Such a family draws another variable for its differences.
        }
        let noise = straightflow::estimator::Noise::draw(Key::new(4), &law, &specs);
        let given = |i: usize| noise.get(i);
        let want: Vec<_> = (0..specs.len()).map(given).collect();
        let want = reference.gradient(want, &law, cost);
        let want = values(want.expect("valid"));
        for base in ["straight-through", "second-order-st", "none"] {
            let spec = format!(
                "debiased-st:preset=stateless,base={base},samples=3,flips={}",
                d * k + 5
            );
            let choice = tensor::<4>(&[0.3; 6], [3, 2, 1, 1], DType::F64);
            let mut noise = vec![given(0), choice];
            noise.extend((1..specs.len()).map(given));
            let got = build(&spec).gradient(noise, &law, cost);
            let got = values(got.expect("valid"));
            assert_close(&format!("{spec}, {:?}", law.family()), &got, &want, 1e-12);
        }
    }
}

/// bitflip-1: the difference of one bit, over the probability of choosing it, and nothing else.
#[test]
fn without_a_base_it_is_bitflip() {
    let (case, law) = golden_case(1, [0.0; 3]);
    let z = [0.0, 1.0, 1.0];
    let p: Vec<f64> = LOGITS.iter().map(|x| crate::scalar::sigmoid(*x)).collect();
    let total: f64 = p.iter().map(|p| p * (1.0 - p)).sum();
    let chances = case.chances(&z, &[false; 3]);
    let estimator = build("debiased-st:preset=bitflip");
    let mut before = 0.0;
    for i in 0..3 {
        let row = Row {
            z: z.to_vec(),
            u: before + 0.5 * chances[i],
            down: Vec::new(),
            probability: 1.0,
        };
        before += chances[i];
        let mut flipped = z;
        flipped[i] = 1.0 - z[i];
        let mut want = [0.0; 3];
        let rise = golden_cost_at(&flipped) - golden_cost_at(&z);
        want[i] = total * (1.0 - 2.0 * z[i]) * rise;
        let got = gradients(estimator.as_ref(), &law, &[row], golden_cost).remove(0);
        assert_close("bitflip", &got, &want, 1e-12);
    }
}

/// Without any variance left there is no gradient, and no division by zero either.
#[test]
fn certain_variables_have_no_gradient() {
    for dtype in [DType::F32, DType::F64] {
        for spec in [
            "debiased-st",
            "debiased-st:choice=uniform",
            "debiased-st:choice=variance,flips=3",
            "debiased-st:base=second-order-st,flips=2",
            "debiased-st:scale=learned",
        ] {
            let natural = [1e4, -1e4, 1e4, -1e4, -1e4, 1e4, -1e4, 1e4];
            for (family, k) in [(Family::Bernoulli, 1), (Family::Categorical, 2)] {
                let law = Law::new(family, tensor(&natural, [1, 8 / k, k], dtype)).expect("valid");
                let table = vec![0.2; 8 / k * k.max(2) * k];
                let estimator = match spec.contains("scale") {
                    true => {
                        let estimator = build(spec);
                        let shape = StateShape::of(&law, 0);
                        let device = Device::flex().autodiff();
                        let state = estimator.init_state(Key::new(1), shape, &device);
                        estimator
                            .bind(&state.expect("it learns"), None)
                            .expect("its own")
                    }
                    false => with_state(spec, &law, &table, &table),
                };
                let gradient = estimator.gradient(Key::new(3), &law, |z| {
                    let [n, batch, ..] = z.dims();
                    (z.sum_dim(2).sum_dim(3) * 3.0).exp().reshape([n, batch])
                });
                let gradient = values(gradient.expect("valid"));
                assert!(gradient.iter().all(|g| *g == 0.0), "{spec}: {gradient:?}");
            }
        }
    }
}
