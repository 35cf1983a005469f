//! The claims about the one-bit toy.
//!
//! Runs of estimators without state are one batch, so all twenty seeds are tested. Those with learned
//! state are computed one by one, for some seconds each; the suite has four seeds of them (one of
//! `relax`, whose runs have 10,000 steps), and all twenty if `STRAIGHTFLOW_FULL_TOY=1`. The record of a
//! full run is in `results/2026-11-18-toy`, and a test looks at that too.

use straightflow_experiments::limits::LimitError;
use straightflow_experiments::toy::{STEPS, Subject, Summary, Toy, ToyConfig, ToyError, subjects};

fn toy(specs: &[&str], seeds: usize) -> Toy {
    let specs = specs.iter().map(|text| text.parse().expect("a spec"));
    let mut config = ToyConfig {
        seeds,
        estimators: specs.map(Subject::with_default_steps).collect(),
        ..ToyConfig::default()
    };
    // The variance is looked at by a test of its own.
    config.variance.steps = 1;
    config.variance.replicates = 2;
    Toy::new(config).expect("a valid configuration")
}

/// Every run of every estimator ends on the right side for all four `p0`.
fn all_end_right(specs: &[&str], seeds: usize) {
    let toy = toy(specs, seeds);
    for index in 0..specs.len() {
        let row = toy.row(index).expect("finite estimates");
        for runs in &row.runs {
            assert_eq!(
                runs.right, seeds,
                "{} at p0 = {}",
                row.estimator.spec, runs.p0
            );
        }
    }
}

#[test]
fn estimators_without_state_find_the_optimum() {
    let specs = [
        "reinforce:baseline=loo,samples=2",
        "arm",
        "disarm",
        "arms",
        "finite-difference",
        "enumerate",
    ];
    all_end_right(&specs, 20);
}

#[test]
fn reinforce_with_an_average_finds_the_optimum() {
    all_end_right(&["reinforce:baseline=moving-average"], seeds(4));
}

#[test]
fn reinforce_with_a_network_finds_the_optimum() {
    all_end_right(&["reinforce:baseline=learned"], seeds(4));
}

/// With the scale fixed at -1 it does not, because a quadratic is far from linear for one bit.
#[test]
fn double_control_variates_with_a_learned_scale_find_the_optimum() {
    all_end_right(&["double-cv"], seeds(4));
}

#[test]
fn relax_finds_the_optimum() {
    all_end_right(&["relax"], seeds(1));
}

/// The seeds of a claim about estimators with state.
fn seeds(few: usize) -> usize {
    match std::env::var_os("STRAIGHTFLOW_FULL_TOY") {
        Some(_) => 20,
        None => few,
    }
}

/// The record that the documentation cites says what the tests above say, for all twenty seeds.
#[test]
fn the_recorded_run_keeps_the_claims() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../results/2026-11-18-toy/summary.json"
    );
    let text = std::fs::read_to_string(path).expect("the recorded summary");
    let summary: Summary = serde_json::from_str(&text).expect("a summary of the toy");
    assert_eq!(summary.seeds, 20);
    let recorded: Vec<String> = summary
        .rows
        .iter()
        .map(|row| row.estimator.spec.to_string())
        .collect();
    let known: Vec<String> = subjects().iter().map(|one| one.spec.to_string()).collect();
    assert_eq!(
        recorded, known,
        "an estimator was added: run `straightflow toy` again"
    );
    for spec in CLAIMED {
        let row = summary
            .rows
            .iter()
            .find(|row| row.estimator.spec.to_string() == *spec);
        for runs in &row.expect("a row").runs {
            assert_eq!(runs.right, 20, "{spec} at p0 = {}", runs.p0);
        }
    }
}

/// The estimators that end on the right side in every run.
const CLAIMED: &[&str] = &[
    "reinforce:baseline=moving-average",
    "reinforce:baseline=loo,samples=2",
    "reinforce:baseline=learned",
    "arm",
    "disarm",
    "arms",
    "double-cv",
    "relax",
    "debiased-st",
    "finite-difference",
    "enumerate",
];

/// The exact gradient never turns, so the steps of Adam are known: about the learning rate each.
#[test]
fn the_exact_gradient_takes_the_steps_that_adam_takes() {
    let toy = toy(&["enumerate"], 3);
    let row = toy.row(0).expect("finite estimates");
    for runs in &row.runs {
        assert_eq!((runs.right, runs.arrived), (3, 3));
        // logit(0.95) = 2.944; the first steps are 0.01, and later ones are smaller because the
        // gradient p (1 - p) falls.
        let steps = runs.median_steps.expect("it arrives");
        assert!((295..600).contains(&steps), "{steps}");
        assert_eq!(runs.curve[0], 0.5);
        assert!(runs.curve.is_sorted());
        assert_eq!(runs.curve.last(), Some(&runs.end));
    }
    assert_eq!(row.steps, STEPS);
}

/// At p = 1/2 and p0 = .499: f(1) = .251001 and f(0) = .249001. By hand, with the difference D = .002:
/// REINFORCE is +-f(z)/2, so its variance is ((f(1) + f(0)) / 4)^2; with leave-one-out and two draws
/// the estimate is D/2 in half of the cases, else 0; ARM is D (u - 1/2) with sign, so its second moment
/// is D^2 / 12 and its mean D/4; DisARM is D/4.
#[test]
fn variances_are_those_of_the_formulas() {
    let specs = [
        "reinforce",
        "reinforce:baseline=loo,samples=2",
        "arm",
        "disarm",
    ];
    let mut config = toy(&specs, 1).config().clone();
    config.variance.replicates = 40_000;
    for subject in &mut config.estimators {
        subject.steps = 1;
    }
    let toy = Toy::new(config).expect("a valid configuration");
    let (f1, f0) = (0.501f64.powi(2), 0.499f64.powi(2));
    let d = f1 - f0;
    let want = [
        Some(((f1 + f0) / 4.0).powi(2)),
        Some(d * d / 16.0),
        Some(d * d / 12.0 - d * d / 16.0),
        None,
    ];
    for (index, want) in want.into_iter().enumerate() {
        let row = toy.row(index).expect("finite estimates");
        let variance = &row.variance;
        let gap = (variance.mean - variance.exact).abs();
        assert!(
            gap <= 4.0 * variance.standard_error + 1e-12,
            "{}",
            row.estimator.spec
        );
        match (variance.log_variance, want) {
            // The variance of bounded estimates is known to about a hundredth.
            (Some(got), Some(want)) => {
                assert!(
                    (got - want.ln()).abs() < 0.03,
                    "{} {got}",
                    row.estimator.spec
                )
            }
            (got, want) => assert_eq!((got, want), (None, None), "{}", row.estimator.spec),
        }
    }
}

/// The same bits on one thread and on two, with state and without, and whatever else runs.
#[test]
fn results_depend_on_the_configuration_only() {
    let run = |threads: usize, specs: &[&str], index: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let mut config = toy(specs, 2).config().clone();
        for subject in &mut config.estimators {
            subject.steps = 50;
        }
        let toy = Toy::new(config).expect("a valid configuration");
        pool.expect("threads")
            .install(|| toy.row(index).expect("finite estimates"))
    };
    for spec in ["relax", "arms"] {
        let alone = run(1, &[spec], 0);
        assert_eq!(alone, run(2, &[spec], 0), "{spec}");
        assert_eq!(alone, run(2, &["arm", spec], 1), "{spec}");
    }
}

#[test]
fn every_estimator_of_bits_takes_part() {
    let specs: Vec<String> = subjects().iter().map(|one| one.spec.to_string()).collect();
    for spec in [
        "straight-through",
        "rebar",
        "muprop",
        "reinforce",
        "reinforce:baseline=learned",
    ] {
        assert!(specs.iter().any(|known| known == spec), "{spec}: {specs:?}");
    }
    assert!(!specs.iter().any(|spec| spec.starts_with("vimco")));
    Toy::new(ToyConfig::default()).expect("the default configuration is valid");
}

#[test]
fn bad_configurations_are_refused() {
    let default = ToyConfig::default;
    let half = ToyConfig {
        p0: vec![0.5],
        ..default()
    };
    assert!(matches!(Toy::new(half), Err(ToyError::P0(_))));
    let still = ToyConfig {
        learning_rate: 0.0,
        ..default()
    };
    assert!(matches!(
        Toy::new(still),
        Err(ToyError::Limit(LimitError::LearningRate(_)))
    ));
    let none = ToyConfig {
        seeds: 0,
        ..default()
    };
    assert!(matches!(
        Toy::new(none),
        Err(ToyError::Limit(LimitError::TooFew("seeds", 1)))
    ));
    for (spec, want) in [
        ("vimco", "leave it out"),
        ("exponential-arrival", "bernoulli"),
    ] {
        let one = Subject::with_default_steps(spec.parse().expect("a spec"));
        let config = ToyConfig {
            estimators: vec![one],
            ..default()
        };
        let message = Toy::new(config).expect_err("it is wrong").to_string();
        assert!(message.contains(want), "{message}");
    }
}
