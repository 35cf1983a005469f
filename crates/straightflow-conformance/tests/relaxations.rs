//! The relaxations against the expectations that a second, scalar implementation computes.

use burn::tensor::DType;
use straightflow::Key;
use straightflow::distribution::{Family, FamilyKind};
use straightflow::estimator::{EstimatorExt, Spec};
use straightflow_conformance::problem::{OBJECTIVES, Problem};
use straightflow_conformance::reference;

/// Estimates of each problem.
const REPLICATES: usize = 100_000;
/// A normal variable is further from its mean with probability 5.7e-7. With the 160 comparisons of
/// this file a correct suite fails for one seed in 11000; the seed is fixed.
const DEVIATIONS: f64 = 5.0;
/// What quadrature and rounding may add, relative to the larger of 1 and the target.
const QUADRATURE: f64 = 2e-6;

fn variable(kind: FamilyKind) -> (Family, Vec<f64>) {
    match kind {
        FamilyKind::Bernoulli => (Family::Bernoulli, vec![-0.7]),
        FamilyKind::Categorical => (Family::Categorical, vec![0.3, -1.0, 0.9]),
        FamilyKind::Poisson => (Family::Poisson, vec![2.3f64.ln()]),
        FamilyKind::Binomial => (Family::Binomial { trials: 5 }, vec![-0.4]),
        FamilyKind::NegativeBinomial => (
            Family::NegativeBinomial { dispersion: 2.5 },
            vec![1.6f64.ln()],
        ),
        other => other.examples().swap_remove(0),
    }
}

/// The means of the estimates and their standard errors.
fn measure(spec: &str, problem: &Problem) -> (Vec<f64>, Vec<f64>) {
    let estimator = spec
        .parse::<Spec>()
        .and_then(|spec| spec.build())
        .expect("valid");
    let q = problem.law(REPLICATES);
    let gradient = estimator.gradient(Key::new(4), &q, |z| problem.objective.cost(z));
    let gradient: Vec<f64> = gradient
        .expect("valid")
        .into_data_dtype(DType::F64)
        .try_into_vec()
        .expect("f64 values");
    let (k, n) = (problem.natural.len(), REPLICATES as f64);
    let column = |i: usize| gradient.iter().skip(i).step_by(k);
    let means: Vec<f64> = (0..k).map(|i| column(i).sum::<f64>() / n).collect();
    let error = |i: usize| {
        let squares: f64 = column(i).map(|g| (g - means[i]).powi(2)).sum();
        (squares / n / n).sqrt()
    };
    let errors = (0..k).map(error).collect();
    (means, errors)
}

fn check(specs: &[&str]) {
    let mut comparisons = 0;
    let mut worst = 0.0f64;
    for spec in specs {
        let estimator = spec
            .parse::<Spec>()
            .and_then(|spec| spec.build())
            .expect("valid");
        let (id, config) = (estimator.entry().id, estimator.config());
        // How many deviations the estimates are from the exact gradient, at most: the test can
        // fail.
        let mut bias = 0.0f64;
        for kind in estimator.entry().families {
            let (family, natural) = variable(*kind);
            for objective in OBJECTIVES {
                let problem = Problem {
                    family,
                    natural: natural.clone(),
                    objective: *objective,
                };
                let (target, target_errors) = match reference::expected(id, &config, &problem) {
                    Some(target) => (target.clone(), vec![0.0; target.len()]),
                    None => {
                        let sampled = reference::sampled(id, &config, &problem);
                        let sampled = sampled.expect("a reference");
                        (sampled.mean, sampled.error)
                    }
                };
                let exact = problem.exact_gradient();
                let (means, errors) = measure(spec, &problem);
                for i in 0..means.len() {
                    let error = errors[i].hypot(target_errors[i]);
                    let slack = QUADRATURE * target[i].abs().max(1.0);
                    let gap = ((means[i] - target[i]).abs() - slack).max(0.0);
                    let deviations = if gap == 0.0 { 0.0 } else { gap / error };
                    assert!(
                        deviations <= DEVIATIONS,
                        "{spec} {family:?} {}: entry {i} is {} +- {error}, the reference says {}",
                        objective.name,
                        means[i],
                        target[i]
                    );
                    worst = worst.max(deviations);
                    comparisons += 1;
                    if error > 0.0 {
                        bias = bias.max((means[i] - exact[i]).abs() / error);
                    }
                }
            }
        }
        assert!(
            bias > DEVIATIONS,
            "{spec}: its bias is not seen, {bias:.1} deviations"
        );
    }
    println!("{comparisons} comparisons, the worst {worst:.2} deviations");
}

#[test]
fn gumbel_relaxations_have_their_expectation() {
    check(&[
        "gumbel-softmax:temperature=0.6",
        "straight-through-gumbel:temperature=0.6",
        "gumbel-rao:draws=3,temperature=0.6",
    ]);
}

#[test]
fn relaxed_subsets_have_their_expectation() {
    check(&["relaxed-top-k:temperature=0.6"]);
}

#[test]
fn rules_of_hard_samples_have_their_expectation() {
    check(&[
        "gapped-straight-through:gap=0.7,temperature=0.8",
        "reinmax:temperature=1.4",
    ]);
}

#[test]
fn relaxations_of_counts_have_their_expectation() {
    check(&[
        "exponential-arrival:relaxation=cubic,temperature=0.5",
        "exponential-arrival:relaxation=sigmoid,temperature=0.3",
        "truncated-gumbel:temperature=0.6,tail=0.000001",
        "truncated-gumbel:hard=on,temperature=0.6,tail=0.000001",
    ]);
}

/// On a linear cost the hard and the relaxed sample have the same gradient, so the two references,
/// one over the noise and one over the noise given the sample, have to agree.
#[test]
fn the_two_quadratures_agree_on_linear_costs() {
    for kind in [FamilyKind::Bernoulli, FamilyKind::Categorical] {
        for tau in [0.4, 1.0] {
            let (family, natural) = variable(kind);
            let problem = Problem {
                family,
                natural,
                objective: OBJECTIVES[1],
            };
            let config = serde_json::json!({ "temperature": tau.to_string() });
            let of = |id| reference::expected(id, &config, &problem).expect("a reference");
            let (relaxed, hard) = (of("gumbel-softmax"), of("straight-through-gumbel"));
            for (a, b) in relaxed.iter().zip(hard) {
                assert!((a - b).abs() < 1e-10, "{family:?} {tau}: {a} {b}");
            }
        }
    }
}

/// What is known in closed form: the cubic step keeps the mean for temperatures up to 1, the mean
/// of a sigmoid is `rate tau log(1 + exp(1 / tau))`, and by Campbell's theorem `d/d log-rate E y^2
/// = rate R2 + 2 (rate R1)^2` with `R_i` the integral of the step's power.
#[test]
fn the_reference_of_arrivals_agrees_with_closed_forms() {
    let [linear, quadratic] = [1, 2].map(|i| OBJECTIVES[i]);
    let rate = 2.3f64;
    for (relaxation, tau) in [("cubic", 0.5f64), ("cubic", 1.0), ("sigmoid", 0.3)] {
        let config =
            serde_json::json!({ "relaxation": relaxation, "temperature": tau.to_string() });
        let of = |objective| {
            let problem = Problem {
                family: Family::Poisson,
                natural: vec![rate.ln()],
                objective,
            };
            reference::expected("exponential-arrival", &config, &problem).expect("a reference")[0]
        };
        let softplus = tau * (1.0 / tau).exp().ln_1p();
        let (first, second) = match relaxation {
            // Of r^2 over the transition of length 2 tau: the integral of (3u^2 - 2u^3)^2 is 13/35.
            "cubic" => (1.0, 1.0 - tau + 2.0 * tau * 13.0 / 35.0),
            // The integral of y^2 is that of y minus that of y (1 - y) = -tau dy/dt.
            _ => (softplus, softplus - tau / (1.0 + (-1.0 / tau).exp())),
        };
        let close = |got: f64, want: f64| {
            assert!(
                (got - want).abs() < 2e-6 * want.abs(),
                "{relaxation} {tau}: {got} {want}"
            );
        };
        close(of(linear), 2.0 * rate * first);
        // f = (s - 0.37)^2.
        let square = rate * second + 2.0 * (rate * first).powi(2);
        close(of(quadratic), square - 0.74 * rate * first);
    }
}
