//! Autoencoders: one run, and a grid of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use straightflow_report::Run;
use straightflow_report::picture::Picture;
use straightflow_report::plot::{Axis, Curves, Line};

use super::wobble;

/// Rings of different shapes, which resemble digits from afar.
fn images(count: usize, blur: f32) -> Vec<f32> {
    let image = |index: usize| {
        let shape = |salt: usize| wobble(index, salt) as f32;
        let (wide, tall) = (6.0 + 3.0 * shape(1), 8.0 + 1.5 * shape(2));
        let slant = 0.3 * shape(3);
        (0..784).map(move |pixel| {
            let (x, y) = ((pixel % 28) as f32 - 13.5, (pixel / 28) as f32 - 13.5);
            let distance = ((x + slant * y) / wide).hypot(y / tall) - 1.0;
            (1.3 - distance.abs() * 4.0 / blur).clamp(0.0, 1.0)
        })
    };
    (0..count).flat_map(image).collect()
}

fn reconstructions() -> Vec<u8> {
    let mut picture = Picture::new(28, 28).expect("a size");
    let originals = images(10, 1.0);
    let threshold = |intensity: &f32| f32::from(*intensity > 0.5);
    let binary: Vec<f32> = originals.iter().map(threshold).collect();
    picture.push_row(&binary).expect("whole images");
    picture.push_row(&images(10, 1.9)).expect("whole images");
    picture.png(2).expect("a picture")
}

fn prior() -> Vec<u8> {
    let mut picture = Picture::new(28, 28).expect("a size");
    for row in images(64, 2.4).chunks(8 * 784) {
        picture.push_row(row).expect("whole images");
    }
    picture.png(2).expect("a picture")
}

/// One autoencoder.
pub fn vae(parent: &Path) -> PathBuf {
    let path = parent.join("vae");
    let config = json!({
        "experiment": "vae", "version": "0.1.0", "arch": "linear", "latent": "bernoulli",
        "protocol": "threshold", "estimator": "straight-through", "seed": 1, "epochs": 100,
        "batch": 25, "learning_rate": 1e-4,
    });
    let run = Run::open(&path, &config).expect("a run");
    let at = |epoch: u64| 111.2 + 90.0 * (-0.08 * epoch as f64).exp();
    let curve: Vec<Value> = (0..=100)
        .step_by(5)
        .map(|epoch| {
            json!({ "epoch": epoch, "step": 2200 * epoch, "train_part_nelbo": at(epoch) - 1.74,
                    "test_nelbo": at(epoch) })
        })
        .collect();
    let summary = json!({
        "rows": [{
            "label": "Straight-through", "estimator": "straight-through", "arch": "linear",
            "latent": "bernoulli", "protocol": "threshold", "seed": 1, "epochs": 100, "steps": 220_000,
            "train_nelbo": 109.4612, "valid_nelbo": 111.5734, "test_nelbo": 111.2031,
            "test_bound_100": 106.0488, "gradient_variance": 0.001_321_7, "evaluations": 2,
            "gradients": 1,
        }],
        "train_nelbo": 109.4612, "valid_nelbo": 111.5734, "test_nelbo": 111.2031,
        "test_bound_100": 106.0488, "curve": curve,
    });
    run.write_json("summary.json", &summary).expect("written");
    let line = |label: &str, gap: f64| Line {
        label: label.into(),
        points: (0..=100).map(|e| (e as f64, at(e) - gap)).collect(),
        ..Line::default()
    };
    let plot = Curves {
        title: "The negative ELBO over the epochs".into(),
        caption: "Negative ELBO in nats for each image.".into(),
        x_label: "epoch".into(),
        y_label: "negative ELBO".into(),
        y_axis: Axis::Linear,
        lines: vec![line("train", 1.74), line("test", 0.0)],
        ..Curves::default()
    };
    run.write_text("curves.svg", &plot.svg()).expect("written");
    run.write_bytes("reconstructions.png", &reconstructions())
        .expect("written");
    run.write_bytes("prior.png", &prior()).expect("written");
    let timing = json!({
        "command": "straightflow vae --arch linear --estimator straight-through --epochs 100",
        "wall_seconds": 1834.2,
    });
    run.write_json("timing.json", &timing).expect("written");
    path
}

/// Label and estimator, how far its bound and the paper's are from the best, variance and evaluations.
type Row = (&'static str, &'static str, f64, Option<f64>, f64, u64);

const GRID: [Row; 9] = [
    (
        "Straight-through",
        "straight-through",
        0.0,
        Some(0.4),
        1.3e-3,
        2,
    ),
    ("pWGF", "pwgf", 0.0, Some(0.2), 1.3e-3, 2),
    ("ARM", "arm", 1.08, Some(-0.9), 8.1e-3, 3),
    ("DisARM", "disarm", 0.9, None, 5.2e-3, 3),
    (
        "REINFORCE, leave-one-out baseline",
        "reinforce:baseline=loo,samples=4",
        1.9,
        Some(3.1),
        2.4e-2,
        5,
    ),
    ("REBAR", "rebar", 0.7, Some(0.5), 6.6e-3, 4),
    ("RELAX", "relax", 0.6, Some(-2.4), 6.1e-3, 4),
    (
        "Gumbel-softmax",
        "gumbel-softmax:temperature=0.5",
        1.4,
        Some(-0.1),
        9.2e-4,
        2,
    ),
    ("VIMCO", "vimco", 2.2, None, 3.3e-2, 11),
];

/// The grid of the paper's second table, of which one run did not end.
pub fn table2(parent: &Path) -> PathBuf {
    let path = parent.join("table2");
    let config = json!({
        "experiment": "table2", "version": "0.1.0", "protocol": "threshold", "seeds": 3,
        "archs": ["linear", "nonlinear", "two-layer"],
    });
    let run = Run::open(&path, &config).expect("a run");
    let mut rows = Vec::new();
    for (arch, best) in [("linear", 111.2), ("nonlinear", 101.4), ("two-layer", 99.8)] {
        for (e, (label, estimator, more, paper, variance, evaluations)) in
            GRID.into_iter().enumerate()
        {
            let test = best + more;
            rows.push(json!({
                "arch": arch, "latent": "bernoulli", "estimator": estimator, "label": label,
                "seeds": 3, "epochs": 100, "train_nelbo": test - 1.7, "valid_nelbo": test + 0.4,
                "test_nelbo": test, "test_nelbo_sd": 0.08 * (e as f64), "test_bound_100": test - 5.2,
                "gradient_variance": variance, "evaluations": evaluations,
                "paper": paper.map(|paper| best + paper),
                "unfinished": u64::from(arch == "two-layer" && estimator == "relax"),
                "cells": [format!("{arch}-{estimator}-1")],
            }));
        }
    }
    run.write_json("summary.json", &json!({ "rows": rows }))
        .expect("written");
    let timing = json!({ "command": "straightflow table2 --seeds 3 --epochs 100" });
    run.write_json("timing.json", &timing).expect("written");
    path
}
