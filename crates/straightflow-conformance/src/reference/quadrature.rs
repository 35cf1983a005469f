//! Expectations over the differences of Gumbel variables, by the trapezoidal rule.

/// The step of the grid. The integrands are analytic in a strip of half-width `pi tau` or more, so
/// the error is of the order `exp(-2 pi^2 tau / STEP)`: nothing for the temperatures of tests.
const STEP: f64 = 0.1;
/// The density falls as `exp(-|a|)`, so the rest is below 1e-16.
const REACH: i32 = 380;

/// `E h(G_1 - G_k, .., G_{k-1} - G_k)` for independent standard Gumbel variables, `k` = 2 or 3.
///
/// The differences `a` have the density `(k-1)! exp(-sum a) / (1 + sum exp(-a))^k`.
pub fn gumbel_differences(k: usize, mut h: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut total = Vec::new();
    let mut add = |a: &[f64], factorial: f64| {
        let shift = a.iter().fold(0.0, |m: f64, a| m.max(-a));
        let ln_sum =
            shift + ((-shift).exp() + a.iter().map(|a| (-a - shift).exp()).sum::<f64>()).ln();
        let density = factorial * (-a.iter().sum::<f64>() - k as f64 * ln_sum).exp();
        let weight = density * STEP.powi(k as i32 - 1);
        let terms = h(a);
        total.resize(terms.len(), 0.0);
        for (total, term) in total.iter_mut().zip(terms) {
            *total += weight * term;
        }
    };
    let grid = || (-REACH..=REACH).map(|i| f64::from(i) * STEP);
    match k {
        2 => grid().for_each(|a| add(&[a], 1.0)),
        3 => grid().for_each(|a| grid().for_each(|b| add(&[a, b], 2.0))),
        _ => panic!("a quadrature for 2 or 3 categories, got {k}"),
    }
    total
}

/// A constant temperature in a recorded configuration.
pub fn temperature(config: &serde_json::Value) -> f64 {
    let text = config["temperature"]
        .as_str()
        .expect("a temperature is recorded as text");
    text.parse().expect("a constant temperature")
}

/// `(diag y - y y^T) v`.
pub fn softmax_jacobian(y: &[f64], v: &[f64]) -> Vec<f64> {
    let along: f64 = y.iter().zip(v).map(|(y, v)| y * v).sum();
    y.iter().zip(v).map(|(y, v)| y * (v - along)).collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::gumbel_differences;

    /// A Gumbel variable has variance `pi^2 / 6`, and the differences share one of them.
    #[test]
    fn moments_of_differences_are_exact() {
        let close = |got: Vec<f64>, want: &[f64]| {
            for (got, want) in got.iter().zip(want) {
                assert!((got - want).abs() < 1e-11, "{got} {want}");
            }
        };
        let (whole, half) = (PI * PI / 3.0, PI * PI / 6.0);
        close(
            gumbel_differences(2, |a| vec![1.0, a[0], a[0] * a[0]]),
            &[1.0, 0.0, whole],
        );
        close(
            gumbel_differences(3, |a| vec![1.0, a[0], a[1] * a[1], a[0] * a[1]]),
            &[1.0, 0.0, whole, half],
        );
    }
}
