//! The theorems and formulas behind the projections, each as an assertion: against finite
//! differences, enumeration of the law, a linear programme or a seeded simulation.

mod accuracy;
mod bias;
mod categorical;
mod descent;
mod gradients;
mod kernels;
mod limits;
mod monte_carlo;
mod programme;
mod projections;
mod transport;

use std::sync::Arc;

use straightflow::distribution::CountLaw;
use straightflow::kernel::{Energy, Kernel, Laplace, Mixture, RationalQuadratic, Rbf};
use straightflow::projection::{Atoms, Mmd};

/// One law of every family and corner of the parameter space, small enough to enumerate.
fn laws() -> Vec<CountLaw> {
    let bernoulli = |p: f64| CountLaw::Binomial {
        trials: 1,
        logit: (p / (1.0 - p)).ln(),
    };
    vec![
        bernoulli(0.3),
        bernoulli(0.2),
        CountLaw::Binomial {
            trials: 7,
            logit: (0.4_f64 / 0.6).ln(),
        },
        CountLaw::Poisson { rate: 0.4 },
        CountLaw::Poisson { rate: 5.0 },
        CountLaw::NegativeBinomial {
            dispersion: 1.0,
            mean: 4.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 2.5,
            mean: 3.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.4,
            mean: 1.5,
        },
    ]
}

fn rbf(bandwidth: f64) -> Rbf {
    Rbf::new(bandwidth).expect("a positive bandwidth")
}

fn mmd(bandwidth: f64) -> Mmd {
    Mmd::new(Arc::new(rbf(bandwidth)))
}

fn kernels() -> Vec<Arc<dyn Kernel>> {
    vec![
        Arc::new(rbf(0.6)),
        Arc::new(rbf(1.0)),
        Arc::new(rbf(3.5)),
        Arc::new(Laplace::new(1.4).expect("a positive bandwidth")),
        Arc::new(RationalQuadratic::new(1.2, 0.8).expect("a valid kernel")),
        Arc::new(Mixture::new(&[(1.0, 0.7), (2.0, 2.0)]).expect("a valid mixture")),
        Arc::new(Energy),
    ]
}

/// `E g(Z)` by enumeration, with tails of probability `exp(-60)` left out.
fn expectation(law: &CountLaw, g: impl Fn(f64) -> f64) -> f64 {
    let (lo, hi) = law.window(60.0);
    (lo..=hi).map(|x| law.pmf(x as f64) * g(x as f64)).sum()
}

/// `d/dm E f(Z)`, exactly: `sum_x w(x) [f(x + 1) - f(x)]`.
fn exact_gradient(law: &CountLaw, f: impl Fn(f64) -> f64) -> f64 {
    let weight = law.weight().expect("a law that can move");
    expectation(&weight, |x| f(x + 1.0) - f(x))
}

/// The law of `moved(Z)`, with exact weights.
fn population(law: &CountLaw, moved: impl Fn(f64) -> f64) -> Atoms {
    let (lo, hi) = law.window(60.0);
    let points: Vec<f64> = (lo..=hi).map(|x| moved(x as f64)).collect();
    let weights: Vec<f64> = (lo..=hi).map(|x| law.pmf(x as f64)).collect();
    Atoms::weighted(&points, &weights).expect("probabilities are weights")
}

#[track_caller]
fn assert_near(got: f64, expected: f64, tolerance: f64) {
    let error = (got - expected).abs();
    assert!(
        error <= tolerance,
        "{got:e} is not {expected:e}: off by {error:e}, allowed {tolerance:e}"
    );
}
