//! Integrals over (0, 1) of functions with jumps and steep ends, to nine digits and better.
//!
//! A panel is split in two until a rule of seven points agrees with the sum of the rules of its
//! halves. The rule has the ends of the panel among its points: a jump between an end and the next
//! point would be invisible to an open rule and to those of both halves. A jump costs two panels for
//! each halving of the interval that holds it. All panels of a level are evaluated in one call,
//! because an integrand here is one batch of an estimator.

/// Nodes and weights of Gauss and Lobatto with seven points on (-1, 1).
const NODES: [(f64, f64); 7] = [
    (-1.0, 1.0 / 21.0),
    (-0.830_223_896_278_567, 0.276_826_047_361_566),
    (-0.468_848_793_470_714_2, 0.431_745_381_209_862_64),
    (0.0, 256.0 / 525.0),
    (0.468_848_793_470_714_2, 0.431_745_381_209_862_64),
    (0.830_223_896_278_567, 0.276_826_047_361_566),
    (1.0, 1.0 / 21.0),
];
/// The ends of the interval themselves have no logarithm; what is cut off is worth 1e-16.
const ENDS: (f64, f64) = (1e-17, 1.0 - 2e-16);
/// Below `2^-DEPTH` a panel is accepted as it is: a bounded jump there is worth 1e-14.
const DEPTH: usize = 48;

/// The integral of a vector-valued function; `evaluate` maps nodes to values, node by node.
///
/// # Errors
///
/// Those of `evaluate`.
pub fn integrate<E>(
    tolerance: f64,
    mut evaluate: impl FnMut(&[f64]) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Vec<f64>, E> {
    // No panel begins as the whole interval, whose symmetry could hide something.
    let cuts = [ENDS.0, 0.11, 0.27, 0.45, 0.63, 0.81, ENDS.1];
    let panels: Vec<(f64, f64)> = cuts.windows(2).map(|cut| (cut[0], cut[1])).collect();
    let rules = rules(&panels, &mut evaluate)?;
    let mut open: Vec<((f64, f64), Vec<f64>)> = panels.into_iter().zip(rules).collect();
    let mut total = vec![0.0; open[0].1.len()];
    for level in 0..DEPTH {
        if open.is_empty() {
            break;
        }
        let split = |((a, b), _): &((f64, f64), Vec<f64>)| {
            let middle = 0.5 * (a + b);
            [(*a, middle), (middle, *b)]
        };
        let halves: Vec<(f64, f64)> = open.iter().flat_map(split).collect();
        let fine = self::rules(&halves, &mut evaluate)?;
        let mut next = Vec::new();
        for (i, (_, coarse)) in open.iter().enumerate() {
            let (left, right) = (&fine[2 * i], &fine[2 * i + 1]);
            let sums = left.iter().zip(right).map(|(l, r)| l + r);
            let gap = sums.zip(coarse).map(|(sum, coarse)| (sum - coarse).abs());
            let settled = gap.fold(0.0, f64::max) <= tolerance;
            if settled || level + 1 == DEPTH {
                for (total, (l, r)) in total.iter_mut().zip(left.iter().zip(right)) {
                    *total += l + r;
                }
            } else {
                next.push((halves[2 * i], left.clone()));
                next.push((halves[2 * i + 1], right.clone()));
            }
        }
        open = next;
    }
    Ok(total)
}

/// The rule on every panel.
fn rules<E>(
    panels: &[(f64, f64)],
    evaluate: &mut impl FnMut(&[f64]) -> Result<Vec<Vec<f64>>, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let points = |(a, b): &(f64, f64)| {
        let (middle, half) = (0.5 * (a + b), 0.5 * (b - a));
        NODES.iter().map(move |(x, _)| middle + half * x)
    };
    let nodes: Vec<f64> = panels.iter().flat_map(points).collect();
    let values = evaluate(&nodes)?;
    let rule = |((a, b), values): (&(f64, f64), &[Vec<f64>])| {
        let mut sum = vec![0.0; values[0].len()];
        for (value, (_, weight)) in values.iter().zip(&NODES) {
            for (sum, value) in sum.iter_mut().zip(value) {
                *sum += 0.5 * (b - a) * weight * value;
            }
        }
        sum
    };
    Ok(panels
        .iter()
        .zip(values.chunks(NODES.len()))
        .map(rule)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever it is, also next to an end of a panel.
    #[test]
    fn every_jump_is_found() {
        for i in 0..2_000 {
            let cut = (f64::from(i) + 0.5) / 2_000.0 + 1e-7;
            let step = |nodes: &[f64]| {
                let value = |u: &f64| vec![u + f64::from(u8::from(*u < cut))];
                Ok::<_, ()>(nodes.iter().map(value).collect())
            };
            let got = integrate(1e-12, step).expect("it cannot fail")[0];
            assert!((got - 0.5 - cut).abs() < 1e-10, "{cut}: {got}");
        }
    }

    /// A jump, a logarithmic end and a steep smooth step, whose integrals are known.
    #[test]
    fn jumps_and_steep_ends_are_integrated() {
        let cut = 0.318_730_8;
        let result = integrate::<()>(1e-13, |nodes| {
            let value = |u: &f64| {
                let steep = 1.0 / (1.0 + (-(u - 0.5) / 1e-3).exp());
                vec![f64::from(u8::from(*u < cut)), -u.ln(), steep]
            };
            Ok(nodes.iter().map(value).collect())
        });
        let result = result.expect("it cannot fail");
        for (got, want) in result.iter().zip([cut, 1.0, 0.5]) {
            assert!((got - want).abs() < 1e-11, "{got} is not {want}");
        }
    }
}
