//! Statements about variances, by simulation with fixed seeds.

use straightflow::distribution::CountLaw;
use straightflow::projection::{Discrepancy, Wasserstein};

use crate::mmd;

/// The splitmix64 generator: enough for a few million uniform numbers, and the same everywhere.
struct Splitmix(u64);

impl Splitmix {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Draws from Poisson(5) by inversion.
struct Draws {
    levels: Vec<f64>,
    generator: Splitmix,
}

impl Draws {
    fn new(seed: u64) -> Self {
        let law = CountLaw::Poisson { rate: 5.0 };
        let mut level = 0.0;
        let levels = (0..60)
            .map(|x| {
                level += law.pmf(f64::from(x));
                level
            })
            .collect();
        Self {
            levels,
            generator: Splitmix(seed),
        }
    }

    fn take(&mut self, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| {
                let u = self.generator.uniform();
                self.levels.partition_point(|&level| level < u) as f64
            })
            .collect()
    }
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, squares / (count - 1.0))
}

/// With 4,000 repetitions the ratio of two variances has a relative standard deviation of about
/// 3 % (near-Gaussian gradients), and the bounds are more than ten of these away from the ratios
/// 3287 and 28: a false alarm has a probability below 1e-20.
#[test]
fn the_control_variate_removes_most_of_the_variance() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let discrepancy = mmd(5.0_f64.sqrt());
    for (eps, lowest, highest) in [(0.1, 2000.0, 5000.0), (1.0, 18.0, 40.0)] {
        let mut draws = Draws::new(13);
        let (mut plain, mut reduced) = (Vec::new(), Vec::new());
        for _ in 0..4000 {
            let original = draws.take(64);
            let moved: Vec<f64> = original.iter().map(|z| z - eps * 0.2 * (z - 3.3)).collect();
            plain.push(discrepancy.mean_gradient(&law, &moved).unwrap());
            let cv = discrepancy.control_variate_gradient(&law, &moved, &original);
            reduced.push(cv.unwrap());
        }
        let ((plain_mean, plain), (reduced_mean, reduced)) =
            (mean_and_variance(&plain), mean_and_variance(&reduced));
        let ratio = plain / reduced;
        assert!(
            (lowest..=highest).contains(&ratio),
            "eps = {eps}: the variance falls by {ratio}"
        );
        // Both estimate the same gradient; five standard errors, false alarm 6e-7.
        let error = (plain / 4000.0).sqrt();
        assert!((plain_mean - reduced_mean).abs() < 5.0 * error);
    }
}

/// One repetition with 400 samples has a standard deviation of about 0.6, so the mean of 4,000 has
/// 0.0095; 0.05 is more than five of these, a false alarm below 1e-6.
#[test]
fn the_wasserstein_gradient_with_control_variate_is_of_second_order() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let eps = 1e-3;
    let mut draws = Draws::new(14);
    let rates: Vec<f64> = (0..4000)
        .map(|_| {
            let original = draws.take(400);
            let moved: Vec<f64> = original.iter().map(|z| z - eps * 2.0 * (z - 3.3)).collect();
            let gradient = Wasserstein.control_variate_gradient(&law, &moved, &original);
            gradient.unwrap() / (2.0 * eps)
        })
        .collect();
    let (mean, variance) = mean_and_variance(&rates);
    // Exact is 4.4; straight-through would give 3.4.
    assert!((mean - 4.4).abs() < 0.05, "{mean}");
    assert!((variance.sqrt() - 0.6).abs() < 0.1, "{variance}");
}
