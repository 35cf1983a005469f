//! The flow itself: it goes where its projection says, or does not move at all.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::CountLaw;
use straightflow::flow::{Draws, FlowPoint, ProjectedFlow};
use straightflow::kernel::{Bandwidth, KernelFamily, Rbf};
use straightflow::prelude::*;
use straightflow::projection::{Measure, MmdLaw};

use crate::support::tensor;

/// A cost of one count, its derivative, and a bracket of the fixed point to look for.
struct Problem {
    name: &'static str,
    cost: fn(Tensor<3>) -> Tensor<3>,
    value: fn(f64) -> f64,
    slope: fn(f64) -> f64,
    start: f64,
    bracket: (f64, f64),
}

const PROBLEMS: [Problem; 3] = [
    Problem {
        name: "quadratic",
        cost: |z| (z - 6.3).square(),
        value: |z| (z - 6.3).powi(2),
        slope: |z| 2.0 * (z - 6.3),
        start: 3.0,
        bracket: (4.0, 9.0),
    },
    Problem {
        name: "log-cosh",
        cost: |z| ((z - 4.4) * 0.8).cosh().log(),
        value: |z| (0.8 * (z - 4.4)).cosh().ln(),
        slope: |z| 0.8 * (0.8 * (z - 4.4)).tanh(),
        start: 8.0,
        bracket: (2.5, 7.0),
    },
    Problem {
        name: "double well",
        cost: |z: Tensor<3>| ((z.clone() - 2.0).square() * (z - 14.0).square()) * 1e-3,
        value: |z| 1e-3 * (z - 2.0).powi(2) * (z - 14.0).powi(2),
        slope: |z| 2e-3 * (z - 2.0) * (z - 14.0) * (2.0 * z - 16.0),
        start: 4.0,
        bracket: (0.8, 5.0),
    },
];

/// The rate at which the expected kernel-weighted slope vanishes, by bisection and enumeration.
fn fixed_point(problem: &Problem, bandwidth: &dyn Fn(f64) -> f64) -> f64 {
    let drift = |rate: f64| -> f64 {
        let law = CountLaw::Poisson { rate };
        let kernel = Rbf::new(bandwidth(rate)).expect("valid");
        let response = MmdLaw::new(&law, &kernel).expect("valid");
        let (lo, hi) = law.window(40.0);
        let terms = (lo..=hi).map(|z| z as f64);
        terms
            .map(|z| law.pmf(z) * response.c(z) * (problem.slope)(z))
            .sum()
    };
    let (mut lo, mut hi) = problem.bracket;
    assert!(
        drift(lo) < 0.0 && drift(hi) > 0.0,
        "{}: no bracket",
        problem.name
    );
    while hi - lo > 1e-9 {
        let middle = 0.5 * (lo + hi);
        if drift(middle) < 0.0 {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    lo
}

fn expected(problem: &Problem, rate: f64) -> f64 {
    let law = CountLaw::Poisson { rate };
    let (lo, hi) = law.window(40.0);
    (lo..=hi)
        .map(|z| law.pmf(z as f64) * (problem.value)(z as f64))
        .sum()
}

fn run(problem: &Problem, flow: &ProjectedFlow) -> Vec<FlowPoint> {
    let start = tensor(&[problem.start], [1, 1], DType::F64);
    let q = Poisson::from_rates(start).expect("valid");
    flow.run(Key::new(51), &q, |z| (problem.cost)(z))
        .expect("finite")
}

fn kernel_flow(bandwidth: f64, step: f64, steps: usize) -> ProjectedFlow {
    ProjectedFlow {
        projection: Measure::Mmd {
            kernel: KernelFamily::Rbf,
            bandwidth: Bandwidth::deviations(bandwidth).expect("valid"),
        },
        step,
        draws: Draws::Population,
        steps,
    }
}

/// The rate at which a flow stands still.
fn settled(problem: &Problem, flow: &ProjectedFlow) -> f64 {
    let path = run(problem, flow);
    let [.., before, last] = &path[..] else {
        panic!("a path of two points");
    };
    let speed = (last.means[0] - before.means[0]).abs();
    assert!(speed < 1e-6, "{}: still moving by {speed}", problem.name);
    last.means[0]
}

/// With the kernel's projection the flow of the population settles where `E[c(z) f'(z)] = 0`, up to
/// a bias that is proportional to the step.
#[test]
fn kernel_flows_settle_at_their_fixed_points() {
    for problem in &PROBLEMS {
        for bandwidth in [1.0, 3.0] {
            let rule = Bandwidth::deviations(bandwidth).expect("valid");
            let want = fixed_point(problem, &|rate| rule.resolve(&CountLaw::Poisson { rate }));
            let coarse = settled(problem, &kernel_flow(bandwidth, 0.02, 2500));
            let fine = settled(problem, &kernel_flow(bandwidth, 0.01, 5000));
            let what = format!("{}, {bandwidth} sd: {coarse} {fine} {want}", problem.name);
            assert!((fine - want).abs() < 0.1, "{what}");
            // Without the part that is linear in the step.
            assert!((2.0 * fine - coarse - want).abs() < 2e-3, "{what}");
            let (before, after) = (expected(problem, problem.start), expected(problem, fine));
            assert!(after < before, "{what}: {before} to {after}");
        }
    }
}

/// What the fixed points are worth: the gap of `F` to its least value. On a quadratic it is `f''/8`
/// for every bandwidth, exactly straight-through's; on the other two a wide kernel comes nearer to
/// the optimum than straight-through (a kernel of infinite width).
#[test]
fn fixed_points_of_wide_kernels_are_nearer_to_the_optimum() {
    let gap = |problem: &Problem, rate: f64| {
        let (lo, hi) = problem.bracket;
        let grid = (0..=4000).map(|i| lo + (hi - lo) * f64::from(i) / 4000.0);
        let best = grid
            .map(|rate| expected(problem, rate))
            .fold(f64::INFINITY, f64::min);
        expected(problem, rate) - best
    };
    let at = |problem: &Problem, bandwidth: f64| {
        let rule = Bandwidth::deviations(bandwidth).expect("valid");
        fixed_point(problem, &|rate| rule.resolve(&CountLaw::Poisson { rate }))
    };
    let [quadratic, log_cosh, double_well] = &PROBLEMS;
    for bandwidth in [1.0, 3.0, 300.0] {
        let rate = at(quadratic, bandwidth);
        assert!((rate - 6.3).abs() < 1e-6, "{rate}");
        assert!((gap(quadratic, rate) - 0.25).abs() < 1e-5);
    }
    for problem in [log_cosh, double_well] {
        let wide = gap(problem, at(problem, 3.0));
        let straight_through = gap(problem, at(problem, 300.0));
        assert!(
            wide < straight_through,
            "{}: {wide} {straight_through}",
            problem.name
        );
    }
}

/// The mean projection is straight-through with a learning rate: on a quadratic it contracts by
/// `1 - eps f''` a step.
#[test]
fn mean_flows_are_straight_through() {
    let flow = ProjectedFlow {
        projection: Measure::Mean,
        ..kernel_flow(1.0, 0.1, 30)
    };
    let path = run(&PROBLEMS[0], &flow);
    for pair in path.windows(2) {
        let predicted = pair[0].means[0] - 0.1 * 2.0 * (pair[0].means[0] - 6.3);
        assert!((pair[1].means[0] - predicted).abs() < 1e-9);
    }
    // By samples, it does the same up to their fluctuation: the mean of 20,000 has a standard error
    // below .02, and five of them are added with a contraction of .8.
    let sampled = ProjectedFlow {
        draws: Draws::Samples(20_000),
        ..flow
    };
    let end = run(&PROBLEMS[0], &sampled)[30].means[0];
    assert!((end - 6.3).abs() < 5.0 * 0.02 / 0.6, "{end}");
}

/// As long as no state moves by half the distance of two integers, the exact Wasserstein projection
/// of the moved law is the law itself.
#[test]
fn exact_wasserstein_flows_stall() {
    let problem = &PROBLEMS[1];
    let stalling = ProjectedFlow {
        projection: Measure::Wasserstein,
        // |f'| <= .8, so nothing moves by more than .48.
        ..kernel_flow(1.0, 0.6, 10)
    };
    for point in run(problem, &stalling) {
        assert!((point.means[0] - 8.0).abs() < 1e-6, "{}", point.means[0]);
    }
    let leaping = ProjectedFlow {
        step: 0.9,
        ..stalling
    };
    assert!(run(problem, &leaping)[1].means[0] < 7.5);
    assert!(run(problem, &kernel_flow(3.0, 0.6, 10))[10].means[0] < 6.0);
}

#[test]
fn one_step_can_be_looked_at() {
    let flow = ProjectedFlow {
        projection: Measure::Mean,
        step: 0.5,
        draws: Draws::Samples(4),
        steps: 1,
    };
    let q = Poisson::from_rates(tensor(&[3.0, 5.0], [1, 2], DType::F64)).expect("valid");
    let step = flow.step(Key::new(52), &q, |z| z.square().sum_dim(2));
    let step = step.expect("finite");
    assert_eq!(
        (step.samples.len(), step.moved.len(), step.projected.len()),
        (8, 8, 2)
    );
    for (z, moved) in step.samples.iter().zip(&step.moved) {
        assert_eq!(*moved, z - 0.5 * 2.0 * z);
    }
    assert_eq!(step.projected, [0.0, 0.0]);
    let total: f64 = step.samples.iter().map(|z| z * z).sum();
    assert!((step.point.values[0] - total / 4.0).abs() < 1e-12);
    assert!((step.point.means[1] - 5.0).abs() < 1e-12);
}

#[test]
fn unordered_variables_and_empty_clouds_are_refused() {
    let flow = ProjectedFlow {
        projection: Measure::Wasserstein,
        step: 0.1,
        draws: Draws::Samples(0),
        steps: 1,
    };
    let q = Categorical::from_logits(tensor(&[0.0, 0.0], [1, 1, 2], DType::F32)).expect("valid");
    let refused = flow.step(Key::new(1), &q, |z| z.sum_dim(3));
    assert!(matches!(refused, Err(Error::Unordered { .. })));
    let q = Bernoulli::from_logits(tensor(&[0.0], [1, 1], DType::F32)).expect("valid");
    let refused = flow.step(Key::new(1), &q, |z| z.sum_dim(2));
    assert!(matches!(refused, Err(Error::Projection(_))));
}
