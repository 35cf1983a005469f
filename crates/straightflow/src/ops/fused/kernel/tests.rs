//! The loops by themselves.

use super::super::real::sigmoids;
use super::*;

fn numbers(count: usize, scale: f32) -> Vec<f32> {
    (0..count)
        .map(|i| (1.7 * i as f32).sin() * scale * (i % 9) as f32)
        .collect()
}

/// Whatever instructions were chosen, the bits are those of the plain loop.
#[test]
fn instructions_do_not_change_single_precision() {
    let (d, r, s) = (53, 2, 6);
    let (logits, x) = (numbers(r * d, 13.0), numbers(s * d, 0.1));
    let rows = Rows {
        logits: &logits,
        x: &x,
        d,
    };
    let grad = numbers(s, 1.0);

    let mut plain = vec![0.0; s];
    rows.write_log_prob(&mut plain);
    assert_eq!(rows.log_prob(), plain);
    let mut plain = vec![0.0; r * d];
    rows.add_gradient_by_logits(&grad, &mut plain);
    assert_eq!(rows.gradient_by_logits(&grad), plain);
    let mut plain = vec![0.0; s * d];
    rows.add_gradient_by_x(&grad, &mut plain);
    assert_eq!(rows.gradient_by_x(&grad), plain);
}

#[test]
fn probabilities_have_full_relative_precision() {
    let logits: Vec<f32> = (-2200..=2200).map(|i| i as f32 * 0.047).collect();
    for l in &logits {
        let got = sigmoids(*l)[0];
        let e = (-f64::from(*l).abs()).exp();
        let want = if *l >= 0.0 { 1.0 } else { e } / (1.0 + e);
        let allowed = (2.5e-7 * want).max(f64::from(f32::from_bits(1)));
        assert!(
            (f64::from(got) - want).abs() <= allowed,
            "{l}: {got:e}, {want:e}"
        );
    }
    let ends = [1e4, -1e4, 0.0f32].map(|l| sigmoids(l)[0]);
    assert_eq!(ends, [1.0, 0.0, 0.5]);
    assert!(sigmoids(f32::NAN)[0].is_nan());
}

/// Numbers just below and above the probability of the less likely value, for both signs.
#[test]
fn the_less_likely_value_occurs_below_its_probability() {
    let logits = [2.0f32, -2.0, 0.0];
    let rare = [2.0, 2.0, 0.0].map(|l: f32| 1.0 / (1.0 + l.exp()));
    let below = rare.map(|q| q * 0.999);
    let above = rare.map(|q| q * 1.001);
    let mut values = [below, above, below].concat();
    bits_from_uniform(&logits, &mut values);
    assert_eq!(values, [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
}
