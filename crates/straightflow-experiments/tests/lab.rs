//! The laboratory against numbers that were computed by enumeration, outside of this repository.

use straightflow_experiments::lab::{Failure, Lab, LabConfig, LabError, Row};

/// Bias and one-sample standard deviation for the estimators of [`COLUMNS`], as they were printed: the
/// last digit is rounded. Empty where the printed estimator is not ours: `second-order-st` has the
/// leave-one-out mean as its baseline, where the table has the exact mean, so that only the biases
/// are comparable.
const TABLE: &[(&str, &str, &str, [&str; 8])] = &[
    (
        "bernoulli-0.2",
        "linear",
        "2",
        ["0/0", "0/", "0/0", "0/0", "0/6.50", "0/", "0/0", "0/0"],
    ),
    (
        "bernoulli-0.2",
        "quad",
        ".896",
        [
            "-.600/.80",
            "0/",
            "-.600/.80",
            "-.600/.80",
            "0/1.80",
            "0/",
            "0/1.30",
            "0/0",
        ],
    ),
    (
        "bernoulli-0.2",
        "cos1.3",
        "-1.05",
        [
            "+.387/.31",
            "+.152/",
            "+.387/.31",
            "+.387/.31",
            "0/.20",
            "0/",
            "0/.58",
            "0/0",
        ],
    ),
    (
        "bernoulli-0.2",
        "sigm",
        ".516",
        [
            "-.037/.075",
            "-.094/",
            "-.037/.075",
            "-.037/.075",
            "0/1.83",
            "0/",
            "0/.12",
            "0/0",
        ],
    ),
    (
        "poisson-0.5",
        "linear",
        "2",
        ["0/0", "0/", "0/1.05", "0/.22", "0/6.33", "0/", "0/0", "0/0"],
    ),
    (
        "poisson-0.5",
        "quad",
        "1.523",
        [
            "-1/1.41", "0/", "-1/1.42", "-1/1.28", "0/6.85", "0/", "0/5.79", "0/1.41",
        ],
    ),
    (
        "poisson-0.5",
        "cos1.3",
        "-.838",
        [
            "+.143/.44",
            "+.122/",
            "-.084/.84",
            "+.096/.49",
            "0/.77",
            "0/",
            "0/1.71",
            "0/.48",
        ],
    ),
    (
        "poisson-0.5",
        "sigm",
        ".398",
        [
            "-.041/.13",
            "-.044/",
            "+.026/.32",
            "-.029/.16",
            "0/1.01",
            "0/",
            "0/.63",
            "0/.15",
        ],
    ),
    (
        "poisson-5",
        "linear",
        "2",
        ["0/0", "0/", "0/1.62", "0/.24", "0/6.47", "0/", "0/0", "0/0"],
    ),
    (
        "poisson-5",
        "quad",
        "2.655",
        [
            "-1/4.47", "0/", "-1/3.49", "-1/3.86", "0/11.9", "0/", "0/9.96", "0/4.47",
        ],
    ),
    (
        "poisson-5",
        "cos1.3",
        ".0125",
        [
            "+.017/.92",
            "-.002/",
            "-.122/1.17",
            "+.010/.93",
            "0/.32",
            "0/",
            "0/1.20",
            "0/.86",
        ],
    ),
    (
        "poisson-5",
        "sigm",
        ".124",
        [
            "-.004/.054",
            "-.001/",
            "+.036/.127",
            "+.002/.062",
            "0/.27",
            "0/",
            "0/.124",
            "0/.052",
        ],
    ),
    (
        "poisson-50",
        "linear",
        "2",
        ["0/0", "0/", "0/1.60", "0/.24", "0/14.8", "0/", "0/0", "0/0"],
    ),
    (
        "poisson-50",
        "quad",
        "6.233",
        [
            "-1/14.1", "0/", "-1/11.1", "-1/12.1", "0/31.1", "0/", "0/27.8", "0/14.1",
        ],
    ),
    (
        "poisson-50",
        "cos1.3",
        "0",
        [
            "0/.92", "0/", "0/1.18", "0/.93", "0/.10", "0/", "0/1.03", "0/.86",
        ],
    ),
    (
        "poisson-50",
        "sigm",
        ".0388",
        [
            "0/.017",
            "0/",
            "+.012/.040",
            "+.001/.020",
            "0/.080",
            "0/",
            "0/.039",
            "0/.017",
        ],
    ),
];

const COLUMNS: [&str; 8] = [
    "straight-through",
    "second-order-st:baseline=loo,samples=2",
    "pwgf:bandwidth=1sd",
    "pwgf:bandwidth=4sd",
    "reinforce",
    "reinforce:baseline=loo,samples=2",
    "muprop",
    "finite-difference",
];

/// A printed number and half a unit of its last digit. A zero has three digits after the point, as
/// the smallest numbers of the table have.
fn printed(text: &str) -> (f64, f64) {
    let number = text.parse::<f64>().expect("a number of the table");
    let digits = match text.split_once('.') {
        Some((_, digits)) => digits.len(),
        None => 3,
    };
    (number, 0.5 * 10f64.powi(-(digits as i32)))
}

fn config(problems: &[&str], estimators: &[&str]) -> LabConfig {
    let specs = estimators.iter().map(|text| text.parse().expect("a spec"));
    LabConfig {
        problems: problems.iter().map(|id| (*id).to_owned()).collect(),
        estimators: specs.collect(),
        budgets: vec![2],
        replicates: 100_000,
        budget_replicates: 2,
        ..LabConfig::default()
    }
}

fn rows(config: LabConfig) -> Vec<Row> {
    let lab = Lab::new(config).expect("a valid configuration");
    let units = (0..lab.units()).map(|unit| lab.unit(unit).expect("a finite problem"));
    units.flatten().collect()
}

/// Each of the 224 comparisons has the rounding of the table and four standard errors, so that by
/// chance one test of a hundred would fail; the key is fixed. Standard deviations of heavy-tailed
/// estimates (a rare large count, squared twice) are known less well than their standard errors
/// say, hence the many replicates.
#[test]
fn the_table_of_biases_and_deviations_is_reproduced() {
    let mut problems: Vec<&str> = TABLE.iter().map(|(problem, ..)| *problem).collect();
    problems.dedup();
    let rows = rows(config(&problems, &COLUMNS));
    let mut wrong = Vec::new();
    for (problem, objective, exact, cells) in TABLE {
        for (spec, cell) in COLUMNS.iter().zip(cells) {
            let row = rows.iter().find(|row| {
                row.problem == *problem
                    && row.objective == *objective
                    && row.estimator.spec.to_string() == *spec
            });
            let row = row.unwrap_or_else(|| panic!("{spec} on {objective} of {problem}"));
            let single = row.single.as_ref().expect("a measurement");
            let (want, unit) = printed(exact);
            // Some of the exact gradients were cut, not rounded.
            if (row.exact[0] - want).abs() > 2.0 * unit {
                wrong.push(format!(
                    "{problem} {objective}: exact {} for {want}",
                    row.exact[0]
                ));
            }
            let (bias, std) = cell.split_once('/').expect("two numbers");
            let (want, unit) = printed(bias);
            if (single.bias - want).abs() > unit + 4.0 * single.bias_error {
                let got = format!("{} +- {}", single.bias, single.bias_error);
                wrong.push(format!(
                    "{problem} {objective} {spec}: bias {got} for {bias}"
                ));
            }
            if std.is_empty() {
                continue;
            }
            let (want, unit) = printed(std);
            if (single.std - want).abs() > unit + 4.0 * single.std_error {
                let got = format!("{} +- {}", single.std, single.std_error);
                wrong.push(format!("{problem} {objective} {spec}: std {got} for {std}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the derivative says nothing about the values, pathwise estimators fail and are marked;
/// estimators that use values only are not.
#[test]
fn failures_are_shown() {
    let estimators = [
        "straight-through",
        "second-order-st",
        "reinforce",
        "finite-difference",
    ];
    let config = LabConfig {
        replicates: 20_000,
        ..config(&["poisson-5"], &estimators)
    };
    let rows = rows(config);
    let failure = |objective: &str, spec: &str| {
        let row = rows
            .iter()
            .find(|row| row.objective == objective && row.estimator.id == spec);
        row.expect("a row").failure.clone()
    };
    for spec in ["straight-through", "second-order-st"] {
        assert_eq!(failure("aliased", spec), Some(Failure::WrongSign), "{spec}");
        assert_eq!(failure("step", spec), Some(Failure::Bias), "{spec}");
        assert_eq!(failure("steep", spec), Some(Failure::Bias), "{spec}");
        assert_eq!(failure("linear", spec), None, "{spec}");
    }
    for spec in ["reinforce", "finite-difference"] {
        for objective in ["linear", "aliased", "step", "steep", "well"] {
            assert_eq!(failure(objective, spec), None, "{spec} {objective}");
        }
    }
}

/// What is recommended follows from the rows: the least geometric mean, among those that qualify.
#[test]
fn recommendations_come_from_the_rows() {
    let config = LabConfig {
        budgets: vec![2, 8],
        replicates: 1_000,
        budget_replicates: 1_000,
        training_steps: 20,
        ..config(
            &["bernoulli-0.2", "bits-10"],
            &[
                "straight-through",
                "arm",
                "reinforce",
                "finite-difference",
                "enumerate",
            ],
        )
    };
    let lab = Lab::new(config).expect("a valid configuration");
    let units = (0..lab.units()).map(|unit| lab.unit(unit).expect("a finite problem"));
    let summary = lab.summary(units.flatten().collect());
    // Two budgets, with bias and without, for one bit and for ten.
    assert_eq!(summary.recommendations.len(), 8);
    for one in &summary.recommendations {
        let spec = one.best.spec.to_string();
        let problem = match one.variables {
            1 => "bernoulli-0.2",
            10 => "bits-10",
            other => panic!("{other} variables"),
        };
        assert_eq!(one.problems, [problem]);
        if problem == "bits-10" {
            // 1024 states and 11 evaluations are above the budgets.
            assert!(spec != "enumerate" && spec != "finite-difference", "{spec}");
        }
        assert!(one.best.unbiased || !one.unbiased, "{spec}");
        let next = one.next.as_ref().expect("there are two");
        assert!(one.best.error <= next.error);
        for row in summary
            .rows
            .iter()
            .filter(|row| row.estimator.spec == one.best.spec && row.problem == problem)
        {
            let at = &row.budgets[summary
                .budgets
                .iter()
                .position(|b| *b == one.budget)
                .unwrap()];
            let at = at.as_ref().expect("it is affordable");
            assert!(at.evaluations + at.gradients <= one.budget);
            assert!(at.rmse / row.scale <= one.best.worst * (1.0 + 1e-12));
        }
    }
}

/// The same bits on one thread and on two, and whatever else is measured.
#[test]
fn results_depend_on_the_configuration_only() {
    let one = |threads: usize, estimators: &[&str]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let config = LabConfig {
            replicates: 500,
            budget_replicates: 100,
            training_steps: 10,
            ..config(&["bernoulli-0.2"], estimators)
        };
        let lab = Lab::new(config).expect("a valid configuration");
        pool.expect("threads")
            .install(|| lab.unit(3).expect("a finite problem"))
    };
    let all = ["arm", "reinforce:baseline=learned", "relax"];
    assert_eq!(one(1, &all), one(2, &all));
    assert_eq!(one(2, &all[2..])[0], one(2, &all)[2]);
}

#[test]
fn bad_configurations_are_refused() {
    let error = |config: LabConfig| Lab::new(config).expect_err("it is wrong").to_string();
    let message = error(config(&["poisson-6"], &["reinforce"]));
    assert!(message.contains("poisson-50"), "{message}");
    let message = error(config(&["poisson-5"], &["arm"]));
    assert!(message.contains("none of the estimators"), "{message}");
    let refused = Lab::new(config(&["poisson-5"], &["vimco"]));
    assert!(matches!(refused, Err(LabError::Objective { .. })));
    let message = error(LabConfig {
        budgets: Vec::new(),
        ..LabConfig::default()
    });
    assert!(message.contains("budgets"), "{message}");
}
