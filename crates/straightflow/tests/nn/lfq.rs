//! `Lfq` against an enumeration of the softmax over all codes.

use burn::tensor::{DType, Device, Int, Tensor};
use straightflow::Error;
use straightflow::nn::{Lfq, LfqConfig};

use crate::support::{assert_close, integers, leaf, pull_back, refused, reload, tensor, values};

const GOLDEN: [f64; 3] = [0.012, -0.003, 0.02];

fn layer(dim: usize) -> Lfq {
    LfqConfig::new(dim).init().expect("valid")
}

/// The code of an index, most significant bit first.
fn code(index: usize, d: usize) -> Vec<f64> {
    (0..d)
        .map(|i| f64::from(index >> (d - 1 - i) & 1 == 1) * 2.0 - 1.0)
        .collect()
}

/// `softmax(2 beta x.c)` over all codes.
fn assignment(x: &[f64], beta: f64) -> Vec<f64> {
    let score = |index| {
        let code = code(index, x.len());
        2.0 * beta * x.iter().zip(&code).map(|(x, c)| x * c).sum::<f64>()
    };
    let scores: Vec<f64> = (0..1 << x.len()).map(score).collect();
    let largest = scores.iter().fold(f64::MIN, |a, b| a.max(*b));
    let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

fn entropy(q: &[f64]) -> f64 {
    q.iter().filter(|q| **q > 0.0).map(|q| -q * q.ln()).sum()
}

/// `E H(q)` and `H(E q)` of rows of length d.
fn entropies(x: &[f64], d: usize, beta: f64) -> [f64; 2] {
    let rows: Vec<Vec<f64>> = x.chunks(d).map(|row| assignment(row, beta)).collect();
    let n = rows.len() as f64;
    let mean: Vec<f64> = (0..1 << d)
        .map(|c| rows.iter().map(|row| row[c]).sum::<f64>() / n)
        .collect();
    let certain = rows.iter().map(|row| entropy(row)).sum::<f64>() / n;
    [certain, entropy(&mean)]
}

#[test]
fn golden_numbers() {
    let lfq = layer(3);
    let x = tensor::<2>(&GOLDEN, [1, 3], DType::F64);
    let z = lfq.forward(x.clone());
    assert_eq!(values(z.codes), [1.0, -1.0, 1.0]);
    assert_eq!(integers(z.indices), [5]);
    let h = values(lfq.mean_entropy(x.clone()));
    assert_close("entropy", &h, &[0.591447343429], 5e-13);
    // The bits' probabilities, from an enumeration of the softmax.
    let q = assignment(&GOLDEN, 100.0);
    let probability =
        |i: usize| -> f64 { (0..8).map(|c| q[c] * f64::from(code(c, 3)[i] > 0.0)).sum() };
    let want = [0.991837428847, 0.231475216501, 0.999664649870];
    assert_close("bits", &[0, 1, 2].map(probability), &want, 5e-13);
    // One input: the mean of q is q.
    let same = values(lfq.entropy_of_mean(x).expect("few codes"));
    assert_close("entropy of q", &same, &[0.591447343429], 5e-13);
}

/// Zero is a tie and belongs to -1, also the negative zero.
#[test]
fn codes_are_signs_and_gradients_pass() {
    let x = [0.0, -0.0, 1e-30, -1e-30, 5.0, -1e30];
    let weights = [0.3, -1.0, 2.0, 0.5, -0.7, 1.1];
    for (dtype, tolerance) in [(DType::F32, 1e-7), (DType::F64, 0.0)] {
        let input = leaf::<3>(&x, [1, 2, 3], dtype);
        let z = layer(3).forward(input.clone());
        assert_eq!(values(z.codes.clone()), [-1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
        assert_eq!(z.indices.dims(), [1, 2, 1]);
        assert_eq!(integers(z.indices), [1, 2]);
        let gradient = pull_back(&input, z.codes, &weights);
        assert_close("gradient", &gradient, &weights, tolerance);
    }
}

#[test]
fn indices_and_codes_are_one_to_one() {
    for d in [1, 3, 6] {
        let lfq = layer(d);
        let all = Tensor::<1, Int>::arange(0..lfq.size() as i64, &Device::flex());
        let codes = lfq.codes(all.clone().reshape([lfq.size(), 1]));
        let want: Vec<f64> = (0..lfq.size()).flat_map(|index| code(index, d)).collect();
        assert_eq!(values(codes.clone()), want);
        assert_eq!(integers(lfq.indices(codes)), integers(all));
    }
    let largest = layer(30).forward(tensor::<1>(&[1.0; 30], [30], DType::F32));
    assert_eq!(integers(largest.indices), [(1 << 30) - 1]);
}

/// Entropies and their gradients, the latter by central differences of the enumeration.
#[test]
fn entropies_are_those_of_the_softmax() {
    const D: usize = 4;
    let x: Vec<f64> = (0..6 * D).map(|i| (i as f64 * 2.3).sin() * 0.02).collect();
    for beta in [1.0, 30.0, 100.0] {
        let lfq = LfqConfig::new(D).with_sharpness(beta).init();
        let lfq = lfq.expect("valid");
        let [certain, diverse] = entropies(&x, D, beta);
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
            let input = tensor::<3>(&x, [2, 3, D], dtype);
            let got = [
                lfq.mean_entropy(input.clone()),
                lfq.entropy_of_mean(input.clone()).expect("few codes"),
                lfq.entropy_penalty(input, 0.7).expect("few codes"),
            ];
            let want = [certain, diverse, certain - 0.7 * diverse];
            assert_close("entropies", &got.map(|h| values(h)[0]), &want, tolerance);
        }

        let input = leaf::<3>(&x, [2, 3, D], DType::F64);
        let penalty = lfq.entropy_penalty(input.clone(), 0.7).expect("few codes");
        let gradient = pull_back(&input, penalty, &[1.0]);
        let step = 1e-6 / beta;
        let want: Vec<f64> = (0..x.len())
            .map(|i| {
                let at = |h| {
                    let mut x = x.clone();
                    x[i] += h;
                    let [certain, diverse] = entropies(&x, D, beta);
                    certain - 0.7 * diverse
                };
                (at(step) - at(-step)) / (2.0 * step)
            })
            .collect();
        assert_close("gradient", &gradient, &want, 1e-8);
    }
}

/// Bits that are certain, ties, and codes that nobody uses.
#[test]
fn extreme_inputs_have_finite_entropies_and_gradients() {
    let x = [1e30, -1e30, 0.0, 40.0, -40.0, 0.3, -0.0, 1e-30];
    for dtype in [DType::F32, DType::F64] {
        let input = leaf::<2>(&x, [4, 2], dtype);
        let penalty = layer(2).entropy_penalty(input.clone(), 1.0);
        let penalty = penalty.expect("few codes");
        let want = entropies(&x, 2, 100.0);
        assert_close(
            "penalty",
            &values(penalty.clone()),
            &[want[0] - want[1]],
            1e-6,
        );
        let gradient = pull_back(&input, penalty, &[1.0]);
        assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
        assert_eq!(gradient[..2], [0.0, 0.0]);

        // All in one code: the others have probability zero.
        let input = leaf::<2>(&[40.0, 30.0, 50.0, 60.0], [2, 2], dtype);
        let penalty = layer(2).entropy_penalty(input.clone(), 1.0);
        let penalty = penalty.expect("few codes");
        assert_eq!(values(penalty.clone()), [0.0]);
        assert_eq!(pull_back(&input, penalty, &[1.0]), [0.0; 4]);
    }
}

#[test]
fn impossible_configurations_are_refused() {
    for dim in [0, 31] {
        assert_eq!(refused(LfqConfig::new(dim).init()), ("Lfq", "dim"));
    }
    for sharpness in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let config = LfqConfig::new(3).with_sharpness(sharpness);
        assert_eq!(refused(config.init()), ("Lfq", "sharpness"));
    }
    let x = tensor::<2>(&[0.1; 15], [1, 15], DType::F32);
    let outcome = layer(15).entropy_of_mean(x.clone());
    assert!(matches!(
        outcome,
        Err(Error::TooManyStates { limit: 16_384, .. })
    ));
    assert!(values(layer(15).mean_entropy(x))[0].is_finite());
}

#[test]
fn a_record_gives_the_same_output() {
    let original = layer(2);
    let loaded = reload(&original, layer(2));
    let x = tensor::<2>(&[0.3, -0.8, 2.0, 0.25], [2, 2], DType::F32);
    let (a, b) = (original.forward(x.clone()), loaded.forward(x));
    assert_eq!(values(a.codes), values(b.codes));
    assert_eq!(integers(a.indices), integers(b.indices));
}
