//! The unordered set estimator: known numbers of one variable, the weights by hand, and exact with all
//! configurations.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::Noise;
use straightflow::prelude::*;

use crate::scalar::{build, cost};
use crate::support::{assert_close, leaf, tensor, values};

const LOGITS: [f64; 4] = [0.5, -0.3, 1.1, -0.9];
const COSTS: [f64; 4] = [0.9, -1.4, 0.35, 2.0];

fn probabilities() -> [f64; 4] {
    let total: f64 = LOGITS.iter().map(|x| x.exp()).sum();
    LOGITS.map(|x| x.exp() / total)
}

/// A cost for each category.
fn table(z: Tensor<4>) -> Tensor<2> {
    let costs = tensor::<4>(&COSTS, [1, 1, 1, 4], z.dtype());
    (z * costs).sum_dims(&[2, 3]).squeeze_dims(&[2, 3])
}

/// All sets of a size, each as a list of categories.
fn sets(size: usize) -> Vec<Vec<usize>> {
    let all = (0..1 << 4).map(|mask| (0..4).filter(|i| mask >> i & 1 == 1).collect());
    all.filter(|set: &Vec<usize>| set.len() == size).collect()
}

/// The probability to draw all of a set in any order, of what is left.
fn probability(set: &[usize], gone: f64) -> f64 {
    let p = probabilities();
    let each = set.iter().enumerate().map(|(at, s)| {
        let mut rest = set.to_vec();
        rest.remove(at);
        p[*s] / (1.0 - gone) * probability(&rest, gone + p[*s])
    });
    match set {
        [] => 1.0,
        _ => each.sum(),
    }
}

/// `R(S, s)` of what is left without some.
fn ratio(set: &[usize], s: usize, gone: f64) -> f64 {
    let rest: Vec<usize> = set.iter().copied().filter(|t| *t != s).collect();
    probability(&rest, gone + probabilities()[s]) / probability(set, gone)
}

/// The estimate of a set, from the published formula.
fn by_hand(set: &[usize]) -> (Vec<f64>, f64) {
    let p = probabilities();
    let (mut gradient, mut mean) = (vec![0.0; 4], 0.0);
    for s in set {
        let rest: Vec<usize> = set.iter().copied().filter(|t| t != s).collect();
        let others = rest
            .iter()
            .map(|t| p[*t] * ratio(&rest, *t, p[*s]) * COSTS[*t]);
        let baseline = p[*s] * COSTS[*s] + others.sum::<f64>();
        let share = p[*s] * ratio(set, *s, 0.0);
        mean += share * COSTS[*s];
        for (i, g) in gradient.iter_mut().enumerate() {
            let score = f64::from(u8::from(i == *s)) - p[i];
            *g += share * score * (COSTS[*s] - baseline);
        }
    }
    (gradient, mean)
}

#[test]
fn the_numbers_of_the_formula_are_known() {
    let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-11, "{got} {want}");
    close(probability(&[0, 2], 0.0), 0.511_088_982_825);
    close(ratio(&[0, 2], 0, 0.0), 1.415_848_319_170);
    close(ratio(&[0, 2], 2, 0.0), 1.153_709_850_768);
    for (size, want) in [(2, 0.391_568_359_029), (3, 0.080_850_898_544), (4, 0.0)] {
        let (mut mean, mut square) = ([0.0; 4], 0.0);
        for set in sets(size) {
            let p = probability(&set, 0.0);
            for (i, g) in by_hand(&set).0.into_iter().enumerate() {
                mean[i] += p * g;
                square += p * g * g;
            }
        }
        close(square - mean.iter().map(|g| g * g).sum::<f64>(), want);
        let p = probabilities();
        let expected: f64 = p.iter().zip(COSTS).map(|(p, f)| p * f).sum();
        for i in 0..4 {
            close(mean[i], p[i] * (COSTS[i] - expected));
        }
    }
}

/// Every drawn set has the estimate of the formula, and the sets have their probabilities. The largest
/// of six frequencies of 20,000 draws is within 4.5 standard errors: a false alarm in 6 * 6.8e-6 of all
/// keys, and the key is fixed.
#[test]
fn drawn_sets_have_the_stated_estimate_and_probability() {
    const DRAWS: usize = 20_000;
    for size in [2, 3] {
        let method = build(&format!("unordered-set:samples={size}"));
        let natural = tensor(&LOGITS.repeat(DRAWS), [DRAWS, 1, 4], DType::F64);
        let law = Law::new(Family::Categorical, natural).expect("valid");
        let key = Key::new(3).child(size as u64);
        let estimate = method.estimate(key, &law, table).expect("valid");
        let z = values(estimate.samples[0].clone());
        let gradients = values(method.gradient(key, &law, table).expect("valid"));
        let hot = |draw: usize, element: usize| {
            let at = (draw * DRAWS + element) * 4;
            (0..4).find(|i| z[at + i] == 1.0).expect("one-hot")
        };
        let drawn: Vec<Vec<usize>> = (0..DRAWS)
            .map(|element| {
                let mut set: Vec<usize> = (0..size).map(|draw| hot(draw, element)).collect();
                set.sort_unstable();
                set
            })
            .collect();
        for (element, set) in drawn.iter().enumerate().take(300) {
            let got = &gradients[element * 4..][..4];
            assert_close(&format!("{set:?}"), got, &by_hand(set).0, 1e-12);
        }
        let weighted: f64 = drawn.iter().map(|set| by_hand(set).1).sum();
        let value = values(estimate.surrogate.clone());
        assert_close("value", &value, &[weighted / DRAWS as f64], 1e-12);
        for set in sets(size) {
            let p = probability(&set, 0.0);
            let share = drawn.iter().filter(|one| **one == set).count() as f64 / DRAWS as f64;
            let error = (p * (1.0 - p) / DRAWS as f64).sqrt();
            assert!((share - p).abs() < 4.5 * error, "{set:?}: {share} {p}");
        }
    }
}

/// All configurations of three bits, or of two variables with three categories less one: whatever is
/// drawn, the estimate is the exact gradient, and so are the value and the cost's own gradient.
#[test]
fn all_configurations_leave_nothing_to_chance() {
    let bits = Law::new(
        Family::Bernoulli,
        tensor(&[0.4, -2.1, 7.0], [1, 3, 1], DType::F64),
    );
    let categories = [0.3, -1.0, 0.9, 0.2, 0.0, -9.4];
    let categories = Law::new(
        Family::Categorical,
        tensor(&categories, [1, 2, 3], DType::F64),
    );
    for (law, states) in [(bits, 8), (categories, 9)] {
        let law = law.expect("valid");
        let method = build(&format!("unordered-set:samples={states}"));
        let exact = Exact::default().gradient(&law, cost).expect("few states");
        let want = values(exact);
        for seed in 0..5 {
            let got = method.gradient(Key::new(seed), &law, cost);
            assert_close("gradient", &values(got.expect("valid")), &want, 1e-10);
        }
        let scale = leaf::<1>(&[1.4], [1], DType::F64);
        let estimate = method.estimate(Key::new(1), &law, |z| {
            cost(z) * scale.clone().unsqueeze::<2>()
        });
        let estimate = estimate.expect("valid");
        let mean = Exact::default()
            .expectation(&law, cost)
            .expect("few states");
        let mean = values(mean.value)[0];
        let value = values(estimate.surrogate.clone());
        assert_close("value", &value, &[1.4 * mean], 1e-12);
        let own = values(
            scale
                .grad(&estimate.surrogate.backward())
                .expect("gradient"),
        );
        assert_close("own", &own, &[mean], 1e-12);
        let too_many = build(&format!("unordered-set:samples={}", states + 1));
        let error = too_many.gradient(Key::new(1), &law, cost).map(|_| ());
        assert!(
            matches!(error, Err(Error::InvalidOption { .. })),
            "{error:?}"
        );
    }
}

/// Members of a set differ, also among two hundred bits.
#[test]
fn configurations_of_many_bits_differ() {
    let logits: Vec<f64> = (0..200).map(|i| 3.0 * (f64::from(i) * 0.7).sin()).collect();
    let law = Law::new(Family::Bernoulli, tensor(&logits, [1, 200, 1], DType::F32)).expect("valid");
    let method = build("unordered-set:samples=5");
    let noise = Noise::draw(Key::new(4), &law, &method.noise(&law, 5));
    let estimate = method.estimate(vec![noise.get(0)], &law, |z| z.sum_dims(&[2, 3]));
    let z = values(estimate.expect("valid").samples[0].clone());
    let rows: Vec<&[f64]> = z.chunks(200).collect();
    for (i, row) in rows.iter().enumerate() {
        assert!(rows[..i].iter().all(|other| other != row));
    }
}
