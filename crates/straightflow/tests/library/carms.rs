//! CARMS: the known mean and variance of a small case, and unbiased for more draws.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar::{build, cost, cost_at, score, states, weighted_sum};
use crate::support::{assert_close, tensor, values};

const LOGITS: [f64; 3] = [0.5, -0.3, 1.1];

/// `cos(1.2 z0 - .5 z1 + .8 z2) + z'Az / 2`.
fn oscillating(z: Tensor<4>) -> Tensor<2> {
    let [n, batch, _, k] = z.dims();
    let rows = z.reshape([n * batch, k]);
    let a = tensor::<2>(&[1.2, -0.5, 0.8], [k, 1], DType::F64);
    let form = [0.3, -0.7, 0.2, -0.7, 0.5, 0.9, 0.2, 0.9, -1.1];
    let form = tensor::<2>(&form, [k, k], DType::F64);
    let quadratic = (rows.clone() * rows.clone().matmul(form)).sum_dim(1) * 0.5;
    (rows.matmul(a).cos() + quadratic).reshape([n, batch])
}

/// All pairs of draws: three orders, and the uniform number of the first draw on a fine grid. With two
/// draws the second number is one minus the first, so `u_1 = 1 - v_1 / (v_1 + v_2)` of exponential
/// numbers; `v_2 = 1` and `v_1 = (1 - u) / u` give any `u`.
#[test]
fn the_mean_and_variance_of_a_pair_are_known() {
    // The intervals have ends at multiples of no step, so the midpoints are put between them exactly:
    // the estimate is constant on each cell of the partition by all ends and their mirror images.
    let total: f64 = LOGITS.iter().map(|x| x.exp()).sum();
    let p = LOGITS.map(|x| x.exp() / total);
    let orders = [[0, 2, 1], [0, 1, 2], [1, 0, 2]];
    let (mut cells, mut natural) = (Vec::new(), Vec::new());
    for (number, order) in orders.iter().enumerate() {
        let first = p[order[0]];
        let ends = [first, first + p[order[1]]];
        let mut cuts = [0.0, 1.0, ends[0], ends[1], 1.0 - ends[0], 1.0 - ends[1]];
        cuts.sort_by(f64::total_cmp);
        for cut in cuts.windows(2).filter(|cut| cut[1] - cut[0] > 1e-12) {
            cells.push((number, 0.5 * (cut[0] + cut[1]), (cut[1] - cut[0]) / 3.0));
            natural.extend(LOGITS);
        }
    }
    let batch = cells.len();
    let q = Law::new(
        Family::Categorical,
        tensor(&natural, [batch, 1, 3], DType::F64),
    );
    let q = q.expect("valid");
    let first = cells.iter().map(|(_, u, _)| (-(1.0 - u) / u).exp());
    let uniform: Vec<f64> = first.chain(vec![(-1.0f64).exp(); batch]).collect();
    let order: Vec<f64> = cells
        .iter()
        .map(|(o, ..)| (*o as f64 + 0.5) / 3.0)
        .collect();
    let noise = vec![
        tensor(&uniform, [2, batch, 1, 1], DType::F64),
        tensor(&order, [1, batch, 1, 1], DType::F64),
    ];
    let each = build("carms:samples=2").gradient(noise, &q, oscillating);
    let each = values(each.expect("valid"));
    let rows: Vec<Vec<f64>> = each.chunks(3).map(<[f64]>::to_vec).collect();
    let mean = weighted_sum(cells.iter().map(|(.., w)| *w).zip(&rows));
    let exact = [0.036_423_829_578, 0.100_866_584_022, -0.137_290_413_6];
    assert_close("mean", &mean, &exact, 1e-11);
    let square = |row: &Vec<f64>| row.iter().map(|g| g * g).sum::<f64>();
    let second: f64 = cells
        .iter()
        .zip(&rows)
        .map(|((.., w), row)| w * square(row))
        .sum();
    let variance = second - square(&mean);
    assert!((variance - 0.060_626_780_409).abs() < 1e-11, "{variance}");
}

/// With three and five draws of two variables. 12 comparisons at 4.5 standard errors: a false alarm in
/// 12 * 6.8e-6 < 1e-4 of all keys, and the key is fixed.
#[test]
fn more_draws_are_unbiased() {
    const REPEATS: usize = 40_000;
    let natural = [0.3, -1.0, 0.9, 0.2, 0.0, -2.4];
    let one = Law::new(Family::Categorical, tensor(&natural, [1, 2, 3], DType::F64));
    let one = one.expect("valid");
    let terms = states(&one).into_iter();
    let terms: Vec<_> = terms
        .map(|(z, p)| (p * cost_at(&z), score(&one, &z)))
        .collect();
    let want = weighted_sum(terms.iter().map(|(w, s)| (*w, s)));
    let many = tensor(&natural.repeat(REPEATS), [REPEATS, 2, 3], DType::F64);
    let many = Law::new(Family::Categorical, many).expect("valid");
    for n in [3, 5] {
        let carms = build(&format!("carms:samples={n}"));
        let each = carms.gradient(Key::new(60).child(n), &many, cost);
        let each = values(each.expect("valid"));
        for (j, want) in want.iter().enumerate() {
            let column = || each.iter().skip(j).step_by(6);
            let mean = column().sum::<f64>() / REPEATS as f64;
            let spread = column().map(|g| (g - mean).powi(2)).sum::<f64>();
            let error = (spread / (REPEATS * (REPEATS - 1)) as f64).sqrt();
            let z = (mean - want) / error;
            assert!(z.abs() < 4.5, "n = {n}, {j}: {mean} {want} {z}");
        }
    }
}

/// Logits at which the authors' clipped factor is off by some percent: 4, 0, -2. The factor reaches
/// its largest value where two rare categories meet.
#[test]
fn rare_categories_are_not_clipped() {
    const REPEATS: usize = 400_000;
    let natural = [4.0, 0.0, -2.0];
    let one = Law::new(Family::Categorical, tensor(&natural, [1, 1, 3], DType::F64));
    let exact = Exact::default().gradient(&one.expect("valid"), oscillating);
    let want = values(exact.expect("few states"));
    let many = tensor(&natural.repeat(REPEATS), [REPEATS, 1, 3], DType::F64);
    let many = Law::new(Family::Categorical, many).expect("valid");
    let each = build("carms:samples=2").gradient(Key::new(7), &many, oscillating);
    let each = values(each.expect("valid"));
    for (j, want) in want.iter().enumerate() {
        let column = || each.iter().skip(j).step_by(3);
        let mean = column().sum::<f64>() / REPEATS as f64;
        let spread = column().map(|g| (g - mean).powi(2)).sum::<f64>();
        let error = (spread / (REPEATS as f64 * (REPEATS as f64 - 1.0))).sqrt();
        // Three comparisons at 4.5 standard errors: a false alarm in 2e-5 of all keys.
        assert!(
            (mean - want).abs() < 4.5 * error,
            "{j}: {mean} {want} +- {error}"
        );
    }
}
