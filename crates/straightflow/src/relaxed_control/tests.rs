//! The loops on bits against tensor operations.

use burn::tensor::{DType, Device};

use super::cost::reach;
use super::*;
use crate::Key;
use crate::relaxation::relax;

const N: usize = 3;
const BATCH: usize = 4;
const D: usize = 21;

fn uniform<const R: usize>(key: u64, shape: [usize; R]) -> Tensor<R> {
    Key::new(key).uniform::<R>(shape, &Device::flex(), DType::F64)
}

fn assert_close<const R: usize>(what: &str, got: Tensor<R>, want: Tensor<R>, tolerance: f64) {
    let values = |x: Tensor<R>| {
        x.cast(DType::F64)
            .to_data()
            .try_to_vec::<f64>()
            .expect("numbers")
    };
    let (got, want) = (values(got), values(want));
    let size = want.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    assert!(size > 0.0 && got.len() == want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let off = (got - want).abs();
        assert!(off <= tolerance * size, "{what} {i}: {got}, not {want}");
    }
}

/// The estimate, its variance and the probe of the temperature, in both precisions against tensor
/// operations in double precision. A row has more coordinates than lanes, and some that are left.
#[test]
fn loops_agree_with_tensor_operations() {
    let law = Law::new(Family::Bernoulli, uniform(1, [BATCH, D, 1]) * 8.0 - 4.0).expect("valid");
    let shape = [N, BATCH, D, 1];
    let relaxed = Relaxed::new(&law, uniform(2, shape));
    let (signal, slope) = (uniform(3, [N, BATCH]) - 0.5, uniform(4, shape) * 3.0 - 1.0);
    let (gradient, variance) = relaxed.composed_estimate(signal.clone(), slope.clone());
    let temperature = Tensor::full([1, 1, 1, 1], 0.4, (&Device::flex(), DType::F64));
    let scale = temperature.clone() * 3.0;
    let logits = relaxed.logits(temperature.clone());
    let cost = RelaxedCost {
        control: variance.clone(),
        temperature,
        softened: relax(Family::Bernoulli, logits.clone()),
        logits,
        slope: slope.clone(),
    };
    let probe = cost.composed_probe(Family::Bernoulli, scale.clone(), &variance);
    // The reach depends on the precision; what is probed does not.
    let away = |end: Tensor<4>, softened: Tensor<4>, dtype| {
        (end.cast(DType::F64) - softened.cast(DType::F64)) / reach(dtype)
    };
    let offset = away(probe.end, cost.softened.clone(), DType::F64);
    let lever = probe.lever * reach(DType::F64);

    for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 3e-6)] {
        let four = |x: &Tensor<4>| x.clone().cast(dtype);
        let bits = Relaxed {
            family: Family::Bernoulli,
            z: four(&relaxed.z),
            hard: four(&relaxed.hard),
            score: four(&relaxed.score),
            weight: four(&relaxed.weight),
            probability: None,
        };
        let (got, by) = bits.estimate(signal.clone().cast(dtype), four(&slope));
        assert_close("gradient", got, gradient.clone(), tolerance);
        assert_close(
            "by value",
            by.value.clone(),
            variance.value.clone(),
            tolerance,
        );
        assert_close(
            "by gradient",
            by.gradient.clone(),
            variance.gradient.clone(),
            tolerance,
        );

        let cost = RelaxedCost {
            control: by.clone(),
            temperature: four(&cost.temperature),
            logits: four(&cost.logits),
            softened: four(&cost.softened),
            slope: four(&slope),
        };
        let got = cost.probe(Family::Bernoulli, four(&scale), &by);
        let moved = away(got.end, cost.softened, dtype);
        // The sum is rounded to the precision, which is the square of the reach.
        assert_close("end", moved, offset.clone(), reach(dtype));
        assert_close("lever", got.lever * reach(dtype), lever.clone(), tolerance);
        assert_close("rest", got.rest, probe.rest.clone(), tolerance);
    }
}
