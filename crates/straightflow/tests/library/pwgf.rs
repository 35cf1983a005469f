//! The projected flow as an estimator, against the scalar core and against straight-through.

use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::{CountLaw, Family, Law};
use straightflow::kernel::{Bandwidth, KernelFamily, Rbf};
use straightflow::prelude::*;
use straightflow::projection::categorical::{OneHotMmd, softmax, through_softmax};
use straightflow::projection::{
    Discrepancy, MeanDifference, Measure, Mmd, MmdLaw, ProjectionError, SelfTerms, Wasserstein,
};

use crate::support::{self, assert_close, leaf, tensor, values};

/// The laws that the defaults take; subsets have a test of their own.
fn laws(dtype: DType) -> Vec<Law> {
    let laws = support::laws(dtype).into_iter();
    laws.filter(|law| !matches!(law.family(), Family::Subset { .. }))
        .collect()
}

fn build(spec: &str) -> Box<dyn Estimator> {
    spec.parse::<Spec>()
        .and_then(|spec| spec.build())
        .expect(spec)
}

/// The gradient for given samples `[n, batch, d, k]` and slopes of the same shape: the cost is
/// linear with a slope for each draw, so that `f'` is known.
fn gradient(estimator: &dyn Estimator, law: &Law, z: &[f64], slopes: &[f64]) -> Vec<f64> {
    let [batch, d, k] = law.dims();
    let n = z.len() / (batch * d * k);
    let dtype = law.natural().dtype();
    let shape = [n, batch, d, k];
    let noise = vec![tensor(z, shape, dtype)];
    let q = law.clone();
    let gradient = estimator.gradient(noise, &q, |z| {
        (z * tensor(slopes, shape, dtype)).sum_dims(&[2, 3])
    });
    values(gradient.expect("valid"))
}

/// Reproducible numbers between -1 and 1.
fn slopes(count: usize) -> Vec<f64> {
    let mut u = vec![0.0; count];
    Key::new(41).fill_uniform_f64(&mut u);
    u.iter().map(|u| 2.0 * u - 0.9).collect()
}

const KERNELS: [&str; 5] = [
    "rbf",
    "laplace",
    "energy",
    "rational-quadratic:1.5",
    "mixture:0.5+1+2",
];

/// For bits and one-hot vectors the weight is a constant, for every kernel.
#[test]
fn the_limit_is_straight_through_for_bits_and_one_hot_vectors() {
    for (dtype, rounding) in [(DType::F32, 1e-6), (DType::F64, 1e-14)] {
        for law in laws(dtype) {
            let constant = matches!(law.family(), Family::Bernoulli | Family::Categorical);
            let z = values(law.sample(Key::new(42), 6));
            let f = slopes(z.len());
            let want = gradient(&StraightThrough::default(), &law, &z, &f);
            for spec in [
                "pwgf",
                "pwgf:projection=mean,step=relative(0.3)",
                "pwgf:projection=mean",
            ] {
                let got = gradient(build(spec).as_ref(), &law, &z, &f);
                if constant || spec.contains("mean") {
                    assert_close(spec, &got, &want, rounding);
                } else {
                    assert!(got.iter().zip(&want).any(|(a, b)| (a - b).abs() > 1e-3));
                }
            }
            if constant {
                for kernel in KERNELS {
                    // The general path, not the short cut: the Newton gain, rescaled.
                    let spec = format!("pwgf:kernel={kernel},bandwidth=1.3,gain=projection");
                    let got = gradient(build(&spec).as_ref(), &law, &z, &f);
                    let ratio = got[0] / want[0];
                    let scaled: Vec<f64> = want.iter().map(|x| x * ratio).collect();
                    assert_close(&spec, &got, &scaled, 10.0 * rounding);
                    assert!(ratio > 0.1 && ratio < 1.2, "{spec}: {ratio}");
                }
            }
        }
    }
    // The same for one-hot vectors: (k / h^2) / (1 - k), k = exp(-1 / h^2).
    for h in [0.8f64, 1.3] {
        let logits = [0.3, -1.0, 0.9];
        let law = Law::new(Family::Categorical, tensor(&logits, [1, 1, 3], DType::F64));
        let (law, z, f) = (law.expect("valid"), [0.0, 1.0, 0.0], [0.4, -1.0, 0.3]);
        let newton = build(&format!("pwgf:bandwidth={h},gain=projection"));
        let got = gradient(newton.as_ref(), &law, &z, &f);
        let k = (-1.0 / (h * h)).exp();
        let ratio = k / (h * h) / (1.0 - k);
        let st = gradient(&StraightThrough::default(), &law, &z, &f);
        let want: Vec<f64> = st.iter().map(|x| x * ratio).collect();
        assert_close("one-hot gain", &got, &want, 1e-13);
    }
    // E[c] / M at h = 1 is .6065 / .7869.
    let law = Law::new(Family::Bernoulli, tensor(&[0.4], [1, 1, 1], DType::F64)).expect("valid");
    let newton = build("pwgf:bandwidth=1,gain=projection");
    let ratio = gradient(newton.as_ref(), &law, &[1.0], &[1.0])[0]
        / gradient(&StraightThrough::default(), &law, &[1.0], &[1.0])[0];
    let want = (-0.5f64).exp() / (2.0 * (1.0 - (-0.5f64).exp()));
    assert!((ratio - want).abs() < 1e-12, "{ratio} {want}");
}

/// Relative steps tend to the limit linearly.
#[test]
fn relative_steps_converge_linearly() {
    for law in laws(DType::F64) {
        let z = values(law.sample(Key::new(43), 5));
        let f = slopes(z.len());
        let limit = gradient(build("pwgf").as_ref(), &law, &z, &f);
        let error = |delta: f64| {
            let spec = format!("pwgf:step=relative({delta})");
            let got = gradient(build(&spec).as_ref(), &law, &z, &f);
            let gaps = got.iter().zip(&limit).map(|(a, b)| (a - b).abs());
            gaps.fold(0.0, f64::max)
        };
        let (coarse, fine) = (error(1e-3), error(1e-4));
        let ratio = coarse / fine;
        assert!((9.0..11.0).contains(&ratio), "{:?}: {ratio}", law.family());
        assert!(fine < 1e-3);
    }
}

/// A relative step is the fixed one of `delta h / rms(f')`, with the slopes of one batch element.
#[test]
fn a_relative_step_has_the_stated_size() {
    let (delta, bandwidth) = (0.4, 1.7);
    let one_element = |law: Law| Law::new(law.family(), law.natural().narrow(0, 0, 1));
    for law in laws(DType::F64) {
        let law = one_element(law).expect("valid");
        let z = values(law.sample(Key::new(46), 5));
        let f: Vec<f64> = slopes(z.len()).iter().map(|f| 3.0 * f).collect();
        let square: f64 = f.iter().map(|f| f * f).sum();
        let eps = delta * bandwidth / (square / f.len() as f64).sqrt();
        for options in [
            "gain=projection",
            "cv=off,gain=projection",
            "projection=wasserstein",
        ] {
            if options.contains("wasserstein") && law.family() == Family::Categorical {
                continue; // one-hot vectors have no order
            }
            let of = |step: String| {
                let spec = format!("pwgf:bandwidth={bandwidth},{options},step={step}");
                gradient(build(&spec).as_ref(), &law, &z, &f)
            };
            let what = format!("{:?}, {options}", law.family());
            let got = of(format!("relative({delta})"));
            assert_close(&what, &got, &of(format!("fixed({eps})")), 1e-12);
        }
    }
}

/// The weight of a Poisson sample is `c(z) / E[c]` of the scalar core, at rates 1e-6 to 1e6.
#[test]
fn poisson_weights_are_those_of_the_scalar_core() {
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-12)] {
        for rate in [1e-6, 0.05, 0.5, 5.0, 50.0, 1e4, 1e6] {
            let natural = tensor(&[f64::ln(rate)], [1, 1, 1], dtype);
            let rate = values(natural.clone())[0].exp();
            let law = Law::new(Family::Poisson, natural).expect("valid");
            let core = CountLaw::Poisson { rate };
            let bandwidth = Bandwidth::deviations(3.0).expect("valid").resolve(&core);
            let kernel = Rbf::new(bandwidth).expect("valid");
            let response = MmdLaw::new(&core, &kernel).expect("valid");
            let mean_weight = SelfTerms::new(&core, &kernel).gain;
            for deviations in [-1.5, 0.0, 0.4, 2.0] {
                let z = (rate + deviations * rate.sqrt()).round().max(0.0);
                let got = gradient(build("pwgf").as_ref(), &law, &[z], &[1.0])[0];
                let want = rate * response.c(z) / mean_weight;
                let error = (got - want).abs() / want.abs().max(rate);
                assert!(
                    error < tolerance,
                    "{dtype:?} rate {rate}, z {z}: {got} {want}"
                );
            }
        }
    }
}

/// Published numbers of the raw gradient, with and without control variate: the moved samples are
/// `z - f'` for a step of 1.
#[test]
fn raw_gradients_have_their_published_values() {
    let logit = (0.3f64 / 0.7).ln();
    let bernoulli = (
        Law::new(Family::Bernoulli, tensor(&[logit], [1, 1, 1], DType::F64)).expect("valid"),
        vec![0.0, 0.0, 1.0, 1.0, 1.0],
        vec![-0.1, 0.2, 0.7, 1.3, 0.9],
        [2.747531741024e-2, -0.4446878909346],
    );
    let poisson = (
        Law::new(Family::Poisson, tensor(&[5f64.ln()], [1, 1, 1], DType::F64)).expect("valid"),
        vec![3.0, 5.0, 6.0, 8.0],
        vec![3.2, 4.9, 5.5, 8.1],
        [1.556591536978e-2, -2.587820305671e-2],
    );
    for (law, z, moved, published) in [bernoulli, poisson] {
        let f: Vec<f64> = z.iter().zip(&moved).map(|(z, y)| z - y).collect();
        let factor = values(law.chain_factor())[0];
        for (cv, want) in ["on", "off"].into_iter().zip(published) {
            let spec = format!("pwgf:bandwidth=1,cv={cv},gain=raw,step=fixed(1)");
            let got = gradient(build(&spec).as_ref(), &law, &z, &f)[0] / factor;
            assert!((got - want).abs() < 1e-12, "{spec}: {got} {want}");
        }
    }
}

/// Finite steps of every ordered family, kernel and projection are gradients of the scalar
/// discrepancies, for two batch elements and two coordinates at once.
#[test]
fn finite_steps_agree_with_the_scalar_discrepancies() {
    for law in laws(DType::F64) {
        let Some(coordinates) = law.count_laws() else {
            continue;
        };
        let n = 6;
        let z = values(law.sample(Key::new(44), n));
        let f = slopes(z.len());
        let eps = 0.3;
        let column = |x: &[f64], j: usize| -> Vec<f64> {
            x.iter()
                .skip(j)
                .step_by(coordinates.len())
                .copied()
                .collect()
        };
        let chain = values(law.chain_factor());
        let check =
            |spec: String, discrepancy: &dyn Fn(&CountLaw) -> Box<dyn Discrepancy>, cv: bool| {
                let got = gradient(build(&spec).as_ref(), &law, &z, &f);
                let want: Vec<f64> = (0..coordinates.len())
                    .map(|j| {
                        let (z, f) = (column(&z, j), column(&f, j));
                        let moved: Vec<f64> = z.iter().zip(&f).map(|(z, f)| z - eps * f).collect();
                        let discrepancy = discrepancy(&coordinates[j]);
                        let raw = if cv {
                            discrepancy.control_variate_gradient(&coordinates[j], &moved, &z)
                        } else {
                            discrepancy.mean_gradient(&coordinates[j], &moved)
                        };
                        chain[j] * raw.expect("valid")
                    })
                    .collect();
                assert_close(&format!("{:?} {spec}", law.family()), &got, &want, 1e-11);
            };
        for (cv, text) in [(true, "on"), (false, "off")] {
            let tail = format!("cv={text},gain=raw,step=fixed({eps})");
            check(
                format!("pwgf:projection=mean,{tail}"),
                &|_| Box::new(MeanDifference),
                cv,
            );
            check(
                format!("pwgf:projection=wasserstein,{tail}"),
                &|_| Box::new(Wasserstein),
                cv,
            );
            for kernel in KERNELS {
                let family: KernelFamily = kernel.parse().expect("valid");
                check(
                    format!("pwgf:kernel={kernel},bandwidth=1.2sd,{tail}"),
                    &|law| {
                        let bandwidth = Bandwidth::deviations(1.2).expect("valid").resolve(law);
                        Box::new(Mmd::new(Arc::from(family.at(bandwidth).expect("valid"))))
                    },
                    cv,
                );
            }
        }
    }
}

fn rbf(bandwidth: f64) -> Mmd {
    Mmd::new(Arc::new(Rbf::new(bandwidth).expect("valid")))
}

/// The same for one-hot vectors, in both forms.
#[test]
fn finite_steps_of_one_hot_vectors_agree_with_the_scalar_discrepancies() {
    let logits = [0.3, -1.0, 0.9];
    let law = Law::new(Family::Categorical, tensor(&logits, [1, 1, 3], DType::F64)).expect("valid");
    let z = values(law.sample(Key::new(45), 5));
    let f = slopes(z.len());
    let eps = 0.2;
    let rows = |x: &[f64]| -> Vec<Vec<f64>> { x.chunks(3).map(<[f64]>::to_vec).collect() };
    let moved: Vec<f64> = z.iter().zip(&f).map(|(z, f)| z - eps * f).collect();
    let (moved, original) = (rows(&moved), rows(&z));
    let mmd = OneHotMmd::new(1.1).expect("valid");
    let base = format!("pwgf:bandwidth=1.1,gain=raw,step=fixed({eps})");

    let got = gradient(build(&base).as_ref(), &law, &z, &f);
    let less = |moved: Vec<f64>, original: Vec<f64>| -> Vec<f64> {
        moved.iter().zip(original).map(|(m, o)| m - o).collect()
    };
    let at = |samples: &[Vec<f64>]| mmd.logit_gradient(&logits, samples).expect("valid");
    assert_close("one-hot", &got, &less(at(&moved), at(&original)), 1e-13);
    let got = gradient(build(&format!("{base},cv=off")).as_ref(), &law, &z, &f);
    assert_close("one-hot, cv off", &got, &at(&moved), 1e-13);

    let form = |cv: &str| format!("{base},cv={cv},categorical=per-coordinate");
    // One category against the rest, in turn.
    let at = |samples: &[Vec<f64>]| {
        let (p, mmd) = (softmax(&logits).expect("valid"), rbf(1.1));
        let by_p = p.iter().enumerate().map(|(i, p)| {
            let logit = p.ln() - (-p).ln_1p();
            let entries: Vec<f64> = samples.iter().map(|sample| sample[i]).collect();
            let law = CountLaw::Binomial { trials: 1, logit };
            mmd.mean_gradient(&law, &entries).expect("valid")
        });
        through_softmax(&p, &by_p.collect::<Vec<_>>())
    };
    let got = gradient(build(&form("off")).as_ref(), &law, &z, &f);
    assert_close("per coordinate, cv off", &got, &at(&moved), 1e-13);
    let got = gradient(build(&form("on")).as_ref(), &law, &z, &f);
    assert_close(
        "per coordinate",
        &got,
        &less(at(&moved), at(&original)),
        1e-13,
    );
}

/// A rule that is homogeneous of degree one means the same for sums and means, and for losses in
/// any unit; at the edges nothing is lost.
#[test]
fn default_rules_are_homogeneous_and_finite_at_the_edges() {
    let logits = vec![-1e4, -30.0, 0.0, 0.5, 30.0, 1e4];
    let logs: Vec<f64> = [1e-6, 0.1, 5.0, 80.0, 1e4, 1e6]
        .iter()
        .map(|x: &f64| x.ln())
        .collect();
    for (family, natural, dims) in [
        (Family::Bernoulli, logits.clone(), [2, 3, 1]),
        (Family::Binomial { trials: 9 }, logits.clone(), [2, 3, 1]),
        (Family::Categorical, logits, [1, 2, 3]),
        (Family::Poisson, logs.clone(), [2, 3, 1]),
        (
            Family::NegativeBinomial { dispersion: 0.4 },
            logs,
            [2, 3, 1],
        ),
    ] {
        let law = Law::new(family, tensor(&natural, dims, DType::F32)).expect("valid");
        let z = values(law.sample(Key::new(46), 4));
        let f = slopes(z.len());
        for spec in [
            "pwgf",
            "pwgf:step=relative(0.05)",
            "pwgf:gain=projection,step=relative(0.3)",
            "pwgf:projection=wasserstein,samples=4",
            "second-order-st",
            "second-order-st:baseline=loo,samples=4",
        ] {
            // The window of a heavy tail is too long for the exact coupling to be a unit test.
            let heavy = matches!(family, Family::NegativeBinomial { .. });
            if heavy && spec.contains("wasserstein") {
                continue;
            }
            let what = format!("{family:?} {spec}");
            let estimator = build(spec);
            let base = gradient(estimator.as_ref(), &law, &z, &f);
            let size = base.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(size > 0.0 && size.is_finite(), "{what}: {base:?}");
            for factor in [1e-25, 1e25] {
                let scaled: Vec<f64> = f.iter().map(|f| f * factor).collect();
                let got = gradient(estimator.as_ref(), &law, &z, &scaled);
                for (got, base) in got.iter().zip(&base) {
                    let error = (got / factor - base).abs() / size;
                    assert!(error < 1e-5, "{what} times {factor}: {got} {base}");
                }
            }
            let zero = gradient(estimator.as_ref(), &law, &z, &vec![0.0; f.len()]);
            assert!(zero.iter().all(|x| *x == 0.0), "{what}: {zero:?}");
        }
        // Also without the control variate: a relative step has no size then.
        let noisy = build("pwgf:cv=off,step=relative(0.05)");
        let zero = gradient(noisy.as_ref(), &law, &z, &vec![0.0; f.len()]);
        assert!(zero.iter().all(|x| *x == 0.0), "{family:?}: {zero:?}");
    }
}

/// A fixed step multiplies the gradient of one draw's cost, whatever the loss's reduction.
#[test]
fn fixed_steps_know_the_reduction_of_the_loss() {
    let natural = [1.2, 0.3, 1.9, -0.4];
    let cost = |z: Tensor<3>| (z * 0.4 - 1.0).cosh().log().sum_dim(2).squeeze_dim::<2>(2);
    let run = |spec: &str, sum: bool| {
        let parameters = leaf::<2>(&natural, [2, 2], DType::F64);
        let q = Poisson::from_log_rates(parameters.clone()).expect("valid");
        let estimator = build(spec);
        let z = estimator.sample(Key::new(47), &q, 3).expect("valid");
        let loss = if sum { cost(z).sum() } else { cost(z).mean() };
        values(parameters.grad(&loss.backward()).expect("gradient"))
    };
    let mean = run("pwgf:preset=paper", false);
    let sum = run("pwgf:preset=paper,reduction=sum", true);
    let scaled: Vec<f64> = mean.iter().map(|x| x * 6.0).collect();
    assert_close("sum", &sum, &scaled, 1e-12);

    // `estimate` averages, whatever the drop-in is told.
    for spec in [
        "pwgf:preset=paper,samples=3",
        "pwgf:preset=paper,samples=3,reduction=sum",
    ] {
        let parameters = leaf::<2>(&natural, [2, 2], DType::F64);
        let q = Poisson::from_log_rates(parameters.clone()).expect("valid");
        let estimate = build(spec).estimate(Key::new(47), &q, cost).expect("valid");
        let grads = estimate.surrogate.backward();
        assert_eq!(values(parameters.grad(&grads).expect("gradient")), mean);
    }
}

#[test]
fn impossible_combinations_are_refused() {
    let refuse = |spec: &str| {
        let built = spec.parse::<Spec>().and_then(|spec| spec.build());
        built.map(|_| ()).expect_err(spec).to_string()
    };
    assert!(refuse("pwgf:gain=raw").contains("needs a fixed step"));
    assert!(refuse("pwgf:gain=raw,step=relative(0.1)").contains("needs a fixed step"));
    assert!(refuse("pwgf:cv=off").contains("needs a step of finite size"));
    assert!(refuse("pwgf:projection=wasserstein,gain=projection").contains("stalls"));
    assert!(refuse("pwgf:kernel=laplace,step=fixed(0.1)").contains("kink"));
    assert!(refuse("pwgf:kernel=energy,step=relative(0.1),gain=projection").contains("kink"));
    build("pwgf:kernel=laplace");
    build("pwgf:kernel=energy,step=fixed(0.1),gain=raw");
    assert!(refuse("pwgf:step=fixed(0)").contains("positive"));
    assert!(refuse("pwgf:step=giant").contains("cannot read `giant` as a step"));
    assert!(refuse("pwgf:bandwidth=0").contains("bandwidth"));
    assert!(refuse("pwgf:kernel=gauss").contains("kernel"));
    assert!(refuse("pwgf:cv=maybe").contains("on or off"));
    assert!(refuse("pwgf:preset=article").contains("no preset `article`, only paper"));
    assert!(refuse("second-order-st:baseline=loo").contains("at least 2 samples"));
    let q = Bernoulli::from_logits(tensor(&[0.1], [1, 1], DType::F32)).expect("valid");
    let loo = build("second-order-st:baseline=loo,samples=2");
    let refused = loo.draw(Key::new(1), &q);
    assert!(refused.is_err());
}

/// The discrepancies of tensors are those of the scalar core, and their gradients are the slopes of
/// their values.
#[test]
fn batched_discrepancies_agree_with_the_scalar_ones() {
    let measures = [
        Measure::Mean,
        Measure::Wasserstein,
        Measure::Mmd {
            kernel: KernelFamily::Rbf,
            bandwidth: Bandwidth::Fixed(1.3),
        },
        Measure::Mmd {
            kernel: KernelFamily::Laplace,
            bandwidth: Bandwidth::Fixed(1.3),
        },
    ];
    for law in laws(DType::F64) {
        let (dims, n) = (law.dims(), 5);
        let natural = values(law.natural());
        let z = values(law.sample(Key::new(48), n));
        let moved: Vec<f64> = z
            .iter()
            .zip(slopes(z.len()))
            .map(|(z, f)| z - 0.4 * f)
            .collect();
        let samples = || tensor::<4>(&moved, [n, dims[0], dims[1], dims[2]], DType::F64);
        for measure in &measures {
            let what = format!("{:?} {measure:?}", law.family());
            let at = |natural: &[f64]| {
                let law = Law::new(law.family(), tensor(natural, dims, DType::F64));
                let q = law.expect("valid");
                measure.between(&q, samples()).map(values)
            };
            let one_hot = law.family() == Family::Categorical;
            let gaussian = matches!(
                measure,
                Measure::Mmd {
                    kernel: KernelFamily::Rbf,
                    ..
                }
            );
            let got = match at(&natural) {
                Ok(got) => got,
                Err(error) => {
                    assert!(
                        one_hot && !gaussian && *measure != Measure::Mean,
                        "{what}: {error}"
                    );
                    continue;
                }
            };
            if one_hot && gaussian {
                let mmd = OneHotMmd::new(1.3).expect("valid");
                let of = |variable: usize| {
                    let size = moved.len() / n;
                    let rows = moved
                        .chunks(size)
                        .map(|row| row[3 * variable..][..3].to_vec());
                    let rows: Vec<Vec<f64>> = rows.collect();
                    mmd.value(&natural[3 * variable..][..3], &rows)
                        .expect("valid")
                };
                let want = [of(0) + of(1), of(2) + of(3)];
                assert_close(&what, &got, &want, 1e-13);
            }
            if let Some(coordinates) = law.count_laws() {
                let each = coordinates.iter().enumerate().map(|(j, law)| {
                    let column = moved.iter().skip(j).step_by(coordinates.len());
                    let column: Vec<f64> = column.copied().collect();
                    measure
                        .at(law)
                        .expect("valid")
                        .value(law, &column)
                        .expect("valid")
                });
                let each: Vec<f64> = each.collect();
                let want: Vec<f64> = each.chunks(dims[1]).map(|row| row.iter().sum()).collect();
                assert_close(&what, &got, &want, 1e-13);
            }
            let parameters = leaf::<3>(&natural, dims, DType::F64);
            let live = Law::new(law.family(), parameters.clone()).expect("valid");
            let distance = measure.between(&live, samples()).expect("valid");
            let grads = distance.sum().backward();
            let got = values(parameters.grad(&grads).expect("gradient"));
            for (i, got) in got.iter().enumerate() {
                let total = |by: f64| -> f64 {
                    let mut natural = natural.clone();
                    natural[i] += by;
                    at(&natural).expect("valid").iter().sum()
                };
                let want = (total(1e-5) - total(-1e-5)) / 2e-5;
                assert!((got - want).abs() < 1e-7, "{what}: {got} {want}");
            }
        }
    }
}

/// What would silently be regrouped, or would exhaust the memory, is refused.
#[test]
fn misshapen_and_endless_problems_are_refused() {
    let q = Poisson::from_rates(tensor(&[3.0, 4.0], [2, 1], DType::F64)).expect("valid");
    let one_column = tensor::<3>(&[1.0, 2.0, 3.0, 4.0], [4, 1, 1], DType::F64);
    let refused = Measure::Mean.between(&q, one_column);
    assert!(matches!(refused, Err(Error::SampleShape { .. })));

    let wide = NegativeBinomial::from_means(0.4, tensor(&[1e7], [1, 1], DType::F64));
    let wide = wide.expect("valid");
    let exact = build("pwgf:projection=wasserstein");
    let refused = exact.gradient(Key::new(1), &wide, |z| z);
    assert!(matches!(
        refused,
        Err(Error::Projection(ProjectionError::TooWide { .. }))
    ));
}
