//! Categorical laws: one-hot vectors, single coordinates and ordered atoms.

use straightflow::distribution::CountLaw;
use straightflow::kernel::{Kernel, Rbf};
use straightflow::projection::categorical::{OneHotMmd, softmax, through_softmax};
use straightflow::projection::{Atoms, Discrepancy, Wasserstein};

use crate::{assert_near, mmd};

const CLOUD: [f64; 7] = [-0.12, 0.33, 0.83, 1.37, 2.2, 2.9, 4.41];

const LOGITS: [f64; 4] = [0.3, -0.8, 0.1, 1.2];

/// Central differences by each logit.
fn logit_slopes(value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-5;
    let shifted = |i: usize, by: f64| {
        let mut logits = LOGITS;
        logits[i] += by;
        value(&logits)
    };
    (0..LOGITS.len())
        .map(|i| (shifted(i, step) - shifted(i, -step)) / (2.0 * step))
        .collect()
}

/// The gradient with respect to the logits of the sum over the categories of the squared
/// discrepancies between `Bernoulli(p_i)` and the entries `y_i` of the vectors. For each category,
/// before the softmax, it is `2 [(2 p_i - 1) (1 - K(1)) - mean_n (K(1 - y_i) - K(y_i))]`.
fn per_coordinate_gradient(bandwidth: f64) -> Vec<f64> {
    let (p, kernel) = (softmax(&LOGITS).unwrap(), Rbf::new(bandwidth).unwrap());
    let by_p = p.iter().enumerate().map(|(i, p)| {
        let vectors = vectors();
        let rises = vectors.iter().map(|y| -kernel.fall(-y[i], 1.0));
        let cross = rises.sum::<f64>() / vectors.len() as f64;
        2.0 * ((2.0 * p - 1.0) * kernel.fall(0.0, 1.0) - cross)
    });
    through_softmax(&p, &by_p.collect::<Vec<_>>())
}

/// The squared distance between the law with increasing `support` and other atoms, piece by piece
/// of the two quantile functions.
fn ordered_wasserstein(support: &[f64], logits: &[f64], atoms: &Atoms) -> f64 {
    let law = Atoms::weighted(support, &softmax(logits).unwrap()).unwrap();
    let mut levels = [&[0.0], law.levels(), atoms.levels()].concat();
    levels.sort_by(f64::total_cmp);
    let pieces = levels.windows(2).map(|piece| {
        let middle = 0.5 * (piece[0] + piece[1]);
        let gap = law.quantile(middle) - atoms.quantile(middle);
        (piece[1] - piece[0]) * gap * gap
    });
    pieces.sum()
}

/// Its gradient with respect to the logits. With respect to the level `F_x` it is `(a_x - q)^2 -
/// (a_{x+1} - q)^2` with the quantile `q = Q(F_x)` of the atoms, by `p_i` the sum of these over `x
/// >= i`.
fn ordered_wasserstein_gradient(support: &[f64], atoms: &Atoms) -> Vec<f64> {
    let p = softmax(&LOGITS).unwrap();
    let (mut by_p, mut level) = (vec![0.0; p.len()], 0.0);
    for (x, pair) in support.windows(2).enumerate() {
        level += p[x];
        let q = atoms.central_quantile(level);
        let slope = (pair[0] - q).powi(2) - (pair[1] - q).powi(2);
        by_p[..=x].iter_mut().for_each(|by_p| *by_p += slope);
    }
    through_softmax(&p, &by_p)
}

fn vectors() -> Vec<Vec<f64>> {
    vec![
        vec![1.1, -0.2, 0.1, 0.0],
        vec![0.2, 0.1, 0.7, -0.1],
        vec![-0.1, 0.0, 0.3, 1.4],
    ]
}

#[test]
fn categorical_gradients_are_the_slopes_of_the_values() {
    for h in [0.6, 1.0, 2.5] {
        let one_hot = OneHotMmd::new(h).unwrap();
        let gradient = one_hot.logit_gradient(&LOGITS, &vectors()).unwrap();
        let slopes = logit_slopes(|logits| one_hot.value(logits, &vectors()).unwrap());
        for (g, s) in gradient.iter().zip(&slopes) {
            assert_near(*g, *s, 1e-9);
        }
        // The value itself, by enumeration of the corners.
        let p = softmax(&LOGITS).unwrap();
        let kernel = |x: &[f64], y: &[f64]| {
            let square: f64 = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum();
            (-0.5 * square / (h * h)).exp()
        };
        let corner = |i: usize| {
            (0..4)
                .map(|j| f64::from(u8::from(i == j)))
                .collect::<Vec<_>>()
        };
        let mut direct = 0.0;
        for (i, p_i) in p.iter().enumerate() {
            for (j, p_j) in p.iter().enumerate() {
                direct += p_i * p_j * kernel(&corner(i), &corner(j));
            }
            for y in vectors() {
                direct -= 2.0 / 3.0 * p_i * kernel(&corner(i), &y);
            }
        }
        for x in vectors() {
            for y in vectors() {
                direct += kernel(&x, &y) / 9.0;
            }
        }
        assert_near(one_hot.value(&LOGITS, &vectors()).unwrap(), direct, 1e-13);

        // Per coordinate: a sum of Bernoulli discrepancies.
        let gradient = per_coordinate_gradient(h);
        let slopes = logit_slopes(|logits| {
            let p = softmax(logits).unwrap();
            (0..4)
                .map(|i| {
                    let logit = (p[i] / (1.0 - p[i])).ln();
                    let column: Vec<f64> = vectors().iter().map(|y| y[i]).collect();
                    let law = CountLaw::Binomial { trials: 1, logit };
                    mmd(h).value(&law, &column).unwrap()
                })
                .sum()
        });
        for (g, s) in gradient.iter().zip(&slopes) {
            assert_near(*g, *s, 1e-9);
        }
    }
}

#[test]
fn small_moves_of_one_hot_vectors_give_straight_through() {
    let h = 0.8;
    let one_hot = OneHotMmd::new(h).unwrap();
    let corner = |i: usize| {
        (0..4)
            .map(|j| f64::from(u8::from(i == j)))
            .collect::<Vec<_>>()
    };
    let original = vec![corner(0), corner(3), corner(2)];
    let slope = [0.7, -0.4, 1.1, 0.3];
    // G / (2 eps) tends to e^(-1/h^2) / h^2 J f', linearly in eps. Here f' is the same everywhere.
    let p = softmax(&LOGITS).unwrap();
    let mean: f64 = p.iter().zip(slope).map(|(p, s)| p * s).sum();
    let error = |eps: f64| {
        let shift = |z: &Vec<f64>| z.iter().zip(slope).map(|(z, s)| z - eps * s).collect();
        let moved: Vec<Vec<f64>> = original.iter().map(shift).collect();
        let [moved, original] =
            [&moved, &original].map(|y| one_hot.logit_gradient(&LOGITS, y).unwrap());
        let gradient: Vec<f64> = moved.iter().zip(original).map(|(m, o)| m - o).collect();
        let scale = (-1.0 / (h * h)).exp() / (h * h);
        let limit = p.iter().zip(slope).map(|(p, s)| scale * p * (s - mean));
        gradient
            .iter()
            .zip(limit)
            .map(|(g, limit)| (g / (2.0 * eps) - limit).abs())
            .fold(0.0, f64::max)
    };
    let (coarse, fine) = (error(1e-4), error(1e-5));
    assert!(fine < 1e-5, "{fine:e}");
    assert_near(coarse / fine, 10.0, 0.1);
}

#[test]
fn ordered_categorical_transport_has_the_right_slope() {
    let support = [-0.5, 0.4, 1.7, 3.0];
    let atoms = Atoms::empirical(&CLOUD).unwrap();
    let value = |logits: &[f64]| ordered_wasserstein(&support, logits, &atoms);
    let gradient = ordered_wasserstein_gradient(&support, &atoms);
    for (g, s) in gradient.iter().zip(logit_slopes(value)) {
        assert_near(*g, s, 1e-9);
    }
    // With the atoms 0 and 1 it is the Bernoulli distance.
    let logits = [0.0, -0.8];
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: -0.8,
    };
    let value = ordered_wasserstein(&[0.0, 1.0], &logits, &atoms);
    assert_near(value, Wasserstein.value(&coin, &CLOUD).unwrap(), 1e-14);
}
