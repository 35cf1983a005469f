//! Run directories like those of the experiments, with made-up numbers.

// Each test file uses a part of it.
#![allow(dead_code)]

pub mod show;
mod vae;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use straightflow_report::Run;
use straightflow_report::plot::{
    Axis, Candidate, Curves, Dot, Dots, Flow, Line, Pareto, Reference, Weights,
};

/// All of them, in the order of a report.
pub fn runs(parent: &Path) -> Vec<PathBuf> {
    vec![
        poisson(parent),
        vae::vae(parent),
        vae::table2(parent),
        toy(parent),
        lab(parent),
    ]
}

/// Numbers in [-1, 1] without a pattern that one could see.
fn wobble(a: usize, b: usize) -> f64 {
    let x = ((a * 7919 + b * 104_729) as f64 * 12.9898).sin() * 43_758.545_3;
    2.0 * (x - x.floor()) - 1.0
}

/// Label, specification, mean and spread of a row, and the paper's two.
type Row = (&'static str, &'static str, f64, f64, Option<(f64, f64)>);

const POISSON: [Row; 8] = [
    (
        "pWGF",
        "pwgf:preset=paper",
        4.992,
        0.011,
        Some((5.0076, 0.013)),
    ),
    (
        "straight-through",
        "straight-through",
        5.004,
        0.165,
        Some((5.1049, 0.161)),
    ),
    ("MuProp", "muprop", 5.0, 0.146, Some((5.0196, 0.159))),
    (
        "REINFORCE, leave-one-out baseline",
        "reinforce:baseline=loo",
        5.0,
        0.138,
        Some((4.9452, 0.173)),
    ),
    ("exact gradient", "enumerate", 5.001, 0.138, None),
    (
        "straight-through, matched gain",
        "straight-through",
        5.004,
        0.0102,
        None,
    ),
    ("pWGF, unit gain", "pwgf", 4.994, 0.146, None),
    (
        "pWGF without control variate",
        "pwgf:preset=paper,control=false",
        5.034,
        0.171,
        None,
    ),
];

/// The game of the paper's first table.
pub fn poisson(parent: &Path) -> PathBuf {
    let path = parent.join("poisson");
    let config = json!({
        "experiment": "poisson",
        "version": "0.1.0",
        "seeds": 20, "epochs": 120, "rate": 5.0, "learning_rate": 2.5, "samples": 200,
    });
    let mut run = Run::open(&path, &config).expect("a run");
    let rows: Vec<Value> = POISSON
        .iter()
        .enumerate()
        .map(|(index, (label, spec, mean, spread, paper))| {
            json!({
                "id": format!("row-{index}"), "label": label, "spec": spec,
                "mean": mean, "time_std": spread, "seed_std": spread * 1.1,
                "settle": if index == 7 { Value::Null } else { json!(94 + 50 * index) },
                "paper_mean": paper.map(|paper| paper.0), "paper_std": paper.map(|paper| paper.1),
            })
        })
        .collect();
    for row in &rows {
        run.append(row).expect("appended");
    }
    let summary = json!({ "experiment": "poisson", "seeds": 20, "rows": rows });
    run.write_json("summary.json", &summary).expect("written");
    let timing = json!({
        "command": "straightflow poisson --seeds 20 --epochs 120",
        "wall_seconds": 83.2, "cpu": "a processor", "threads": 2, "rustc": "1.95.0",
        "date": "2026-11-15",
    });
    run.write_json("timing.json", &timing).expect("written");
    run.write_text("curves.svg", &curves().svg())
        .expect("written");
    run.write_text("weights.svg", &weights().svg())
        .expect("written");
    run.write_text("flow.svg", &flow().svg()).expect("written");
    path
}

/// Learning curves of five methods.
pub fn curves() -> Curves {
    let line = |(index, row): (usize, &Row)| {
        let (label, _, mean, spread, _) = row;
        let pace = [0.08, 0.3, 0.27, 0.25, 0.3, 0.1, 0.28, 0.05][index];
        let points: Vec<(f64, f64)> = (0..=120)
            .map(|epoch| {
                let x = epoch as f64;
                let swing = 0.6 * spread * wobble(epoch, index);
                (x, mean - (mean - 1.0) * (-pace * x).exp() + swing)
            })
            .collect();
        let width = |x: f64| spread * (1.0 + 4.0 * (-pace * x).exp());
        Line {
            label: (*label).to_owned(),
            band: points
                .iter()
                .map(|(x, y)| (y - width(*x), y + width(*x)))
                .collect(),
            points,
            ..Line::default()
        }
    };
    Curves {
        title: "The generator's rate over the game".into(),
        caption:
            "Mean over 20 seeds; the bands are one standard deviation over seeds to each side."
                .into(),
        x_label: "epoch".into(),
        y_label: "rate of the generator".into(),
        y_axis: Axis::Linear,
        lines: POISSON.iter().enumerate().take(6).map(line).collect(),
        reference: Some(Reference {
            label: "rate of the data".into(),
            value: 5.0,
        }),
        ..Curves::default()
    }
}

/// Weights of a Poisson variable of rate five.
pub fn weights() -> Weights {
    let line = |(label, bandwidth): (&str, f64)| Line {
        label: label.to_owned(),
        points: (0..=14)
            .map(|z| {
                let d = f64::from(z) - 5.0;
                (
                    f64::from(z),
                    (-d * d / (2.0 * bandwidth * bandwidth)).exp() * 2.2 / bandwidth.sqrt(),
                )
            })
            .collect(),
        ..Line::default()
    };
    Weights {
        title: "Weights c(z) of the kernel by bandwidth".into(),
        caption: "The weight that a sample's slope gets; straight-through weighs all alike.".into(),
        x_label: "z".into(),
        y_label: "c(z) / E c".into(),
        lines: [
            ("h = 1", 1.0),
            ("h = sd", 2.24),
            ("h = 2 sd", 4.5),
            ("h = 3 sd", 6.7),
        ]
        .map(line)
        .to_vec(),
        reference: Some(Reference {
            label: "straight-through".into(),
            value: 1.0,
        }),
    }
}

fn pmf(rate: f64) -> Vec<(f64, f64)> {
    let mut p = (-rate).exp();
    (0..=16)
        .map(|z| {
            let mass = (f64::from(z), p);
            p *= rate / (f64::from(z) + 1.0);
            mass
        })
        .collect()
}

/// One step from rate five.
pub fn flow() -> Flow {
    let law = pmf(5.0);
    let samples: Vec<f64> = law
        .iter()
        .flat_map(|(z, p)| vec![*z; (p * 200.0).round() as usize])
        .collect();
    Flow {
        title: "One step of the projected flow from Pois(5)".into(),
        caption: "Samples, where the slope of the cost moves them, and the Poisson law that is \
                  nearest to the moved samples."
            .into(),
        x_label: "z".into(),
        moved: samples.iter().map(|z| z - 0.25 * (z - 3.3)).collect(),
        samples,
        law,
        projected: pmf(4.58),
    }
}

const ESTIMATORS: [&str; 12] = [
    "straight-through",
    "reinforce",
    "reinforce:baseline=loo",
    "arm",
    "disarm",
    "gumbel-softmax",
    "straight-through-gumbel",
    "gumbel-rao",
    "reinmax",
    "pwgf",
    "rebar",
    "enumerate",
];

fn toy_rows() -> Vec<Value> {
    let row = |(index, id): (usize, &&str)| {
        let right = if index == 0 || index == 9 { 0 } else { 20 };
        let steps = (right > 0).then_some(300 + 97 * index);
        let log_variance = (*id != "enumerate").then_some(-4.0 - 0.731 * index as f64);
        json!({
            "id": id, "label": id, "spec": id, "steps": 2000,
            "runs": [{ "p0": 0.49, "right": right, "median_steps": steps }],
            "variance": { "log_variance": log_variance },
        })
    };
    ESTIMATORS.iter().enumerate().map(row).collect()
}

/// The variance of the toy's gradients.
pub fn dots() -> Dots {
    let dot = |(index, row): (usize, Value)| {
        let value = row["variance"]["log_variance"].as_f64();
        Dot {
            label: ESTIMATORS[index].into(),
            value: value.unwrap_or(f64::NAN),
            interval: value.map(|value| (value - 0.4, value + 0.6)),
            group: usize::from(index > 6),
        }
    };
    Dots {
        title: "Log-variance of the gradient by estimator".into(),
        caption: "Mean of the logarithm over the last tenth of the steps; lines span the seeds."
            .into(),
        x_label: "natural logarithm of the variance".into(),
        x_axis: Axis::Linear,
        rows: toy_rows().into_iter().enumerate().map(dot).collect(),
    }
}

/// The one-bit toy.
pub fn toy(parent: &Path) -> PathBuf {
    let path = parent.join("toy");
    let config = json!({
        "experiment": "toy", "version": "0.1.0",
        "seeds": 20,
    });
    let run = Run::open(&path, &config).expect("a run");
    let summary = json!({ "experiment": "toy", "target": 0.49, "rows": toy_rows() });
    run.write_json("summary.json", &summary).expect("written");
    run.write_text("log-variance.svg", &dots().svg())
        .expect("written");
    path
}

fn lab_rows() -> Vec<Value> {
    let mut rows = Vec::new();
    for (f, family) in ["bernoulli", "poisson"].iter().enumerate() {
        for (o, objective) in ["quadratic", "sigmoid", "coupled"].iter().enumerate() {
            for (e, id) in ESTIMATORS.iter().enumerate() {
                let noisy = *id != "enumerate";
                let biased = e == 0 || e > 4 && e < 10;
                let sd = if noisy {
                    10f64.powf(1.5 * wobble(e + 3 * f, o))
                } else {
                    0.0
                };
                let bias = if biased {
                    0.1 * wobble(e, f + 5 * o)
                } else {
                    0.0
                };
                rows.push(json!({
                    "id": id, "label": id, "spec": id, "family": family,
                    "problem": format!("{family}-1"), "objective": objective, "exact": [0.896],
                    "single": {
                        "bias": bias, "std": sd,
                        "evaluations": 1 + e % 4, "gradients": u64::from(e % 3 == 0),
                    },
                    "budgets": [{ "rmse": bias.hypot(sd) }, { "rmse": bias.hypot(sd / 2.0) }],
                }));
            }
        }
    }
    rows
}

/// Error against cost for one family and objective.
pub fn pareto() -> Pareto {
    let mut rows = lab_rows();
    rows.retain(|row| row["family"] == "poisson" && row["objective"] == "quadratic");
    let number = |row: &Value, key: &str| row["single"][key].as_f64().unwrap_or(f64::NAN);
    let point = |(index, row): (usize, &Value)| Candidate {
        label: ESTIMATORS[index].into(),
        price: number(row, "evaluations") + 2.0 * number(row, "gradients"),
        error: number(row, "bias").hypot(number(row, "std")),
        group: [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 2, 3][index],
    };
    Pareto {
        title: "Error against cost, Poisson, quadratic".into(),
        caption: "Root mean square error of one estimate, cheapest first; the line is the least error for \
                  the price."
            .into(),
        price_label: "evaluations".into(),
        error_label: "root mean square error".into(),
        error_axis: Axis::Log,
        points: rows.iter().enumerate().map(point).collect(),
        groups: ["pathwise", "score function", "hybrid", "exact"]
            .map(String::from)
            .to_vec(),
    }
}

/// The laboratory.
pub fn lab(parent: &Path) -> PathBuf {
    let path = parent.join("lab");
    let config = json!({
        "experiment": "lab", "version": "0.1.0",
    });
    let run = Run::open(&path, &config).expect("a run");
    let summary = json!({
        "experiment": "lab", "rows": lab_rows(), "notes": ["These numbers are made up."],
    });
    run.write_json("summary.json", &summary).expect("written");
    run.write_text("pareto.svg", &pareto().svg())
        .expect("written");
    path
}
