//! Layers in one op: values and gradients beside burn's own operations.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::Key;
use straightflow::fused::{BitInput, BitRows, affine, bit_affine, composed_layers};

const INPUTS: usize = 37;

fn uniform<const D: usize>(seed: u64, shape: [usize; D]) -> Tensor<D> {
    let device = Device::flex();
    Tensor::from_inner(Key::new(seed).uniform::<D>(shape, &device, DType::F32) - 0.5)
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.inner().into_data().try_into_vec().expect("f32")
}

/// The largest difference, relative to the largest number.
fn distance(got: &[f32], want: &[f32]) -> f32 {
    assert_eq!(got.len(), want.len());
    let largest = want
        .iter()
        .fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let pairs = got.iter().zip(want);
    pairs.fold(0.0, |most: f32, (x, y)| most.max((x - y).abs())) / largest
}

struct Layer {
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    slope: Option<f64>,
}

impl Layer {
    fn new(rows: usize, outputs: usize, slope: Option<f64>) -> Self {
        Self {
            x: uniform(1, [rows, INPUTS]).require_grad(),
            weight: uniform(2, [INPUTS, outputs]).require_grad(),
            bias: uniform(3, [outputs]).require_grad(),
            slope,
        }
    }

    /// The value, and the gradients of a cost that tells all outputs apart.
    fn run(&self, value: Tensor<2>) -> [Option<Vec<f32>>; 4] {
        let cost = (value.clone() * uniform::<2>(4, value.dims()).inner()).sum();
        let grads = cost.backward();
        [
            Some(numbers(value)),
            self.x.grad(&grads).map(numbers),
            self.weight.grad(&grads).map(numbers),
            self.bias.grad(&grads).map(numbers),
        ]
    }

    fn affine(&self) -> [Option<Vec<f32>>; 4] {
        let (x, weight, bias) = (self.x.clone(), self.weight.clone(), self.bias.clone());
        self.run(affine(x, weight, bias, self.slope))
    }

    fn of_bits(&self, input: &BitInput) -> [Option<Vec<f32>>; 4] {
        let (weight, bias) = (self.weight.clone(), self.bias.clone());
        self.run(bit_affine(input, weight, bias, self.slope))
    }
}

/// Sums of about a hundred products in single precision, in another order.
fn assert_agree(got: [Option<Vec<f32>>; 4], want: [Option<Vec<f32>>; 4], what: &str) {
    for (place, (got, want)) in got.into_iter().zip(want).enumerate() {
        assert_eq!(got.is_some(), want.is_some(), "{what}, {place}");
        if let (Some(got), Some(want)) = (got, want) {
            let distance = distance(&got, &want);
            assert!(distance < 1e-6, "{what}, {place}: {distance:e}");
        }
    }
}

#[test]
fn values_and_gradients_are_those_of_burn() {
    // Blocks of all widths, and columns that are left over.
    for outputs in [1, 7, 8, 17, 41, 64, 97, 203] {
        for slope in [None, Some(0.2), Some(1.5)] {
            let layer = Layer::new(5, outputs, slope);
            let want = composed_layers(|| layer.affine());
            assert!(want.iter().all(Option::is_some));
            assert_agree(layer.affine(), want, &format!("{outputs}, {slope:?}"));
        }
    }
}

#[test]
fn a_slope_that_is_not_positive_is_left_to_burn() {
    for slope in [0.0, -0.5] {
        let layer = Layer::new(5, 9, Some(slope));
        assert_eq!(layer.affine(), composed_layers(|| layer.affine()));
    }
}

#[test]
fn constants_have_no_gradient() {
    let layer = Layer::new(4, 6, Some(0.1));
    let y = affine(
        layer.x.clone().inner(),
        layer.weight.clone(),
        layer.bias.clone().inner(),
        Some(0.1),
    );
    let grads = y.sum().backward();
    assert!(layer.weight.grad(&grads).is_some());
    assert!(layer.x.grad(&grads).is_none() && layer.bias.grad(&grads).is_none());
    // On no tape at all, it is a plain function.
    let y = affine(
        layer.x.inner(),
        layer.weight.inner(),
        layer.bias.inner(),
        Some(0.1),
    );
    assert!(!y.is_autodiff());
}

#[test]
fn the_sum_of_two_uses_reaches_the_weights() {
    let layer = Layer::new(3, 5, Some(0.3));
    let twice = || {
        let (x, weight, bias) = (&layer.x, &layer.weight, &layer.bias);
        let once = affine(x.clone(), weight.clone(), bias.clone(), layer.slope);
        let again = affine(x.clone() * 2.0, weight.clone(), bias.clone(), layer.slope);
        layer.run(once * again)
    };
    assert_agree(twice(), composed_layers(twice), "two uses");
}

fn bits(rows: usize, density: f32) -> (Arc<BitRows>, Vec<f32>) {
    let mut dense = vec![0.0; rows * INPUTS];
    Key::new(5).fill_uniform_f32(&mut dense);
    for x in &mut dense {
        *x = if *x < density { 1.0 } else { 0.0 };
    }
    let mut bits = BitRows::new(INPUTS);
    for row in dense.chunks_exact(INPUTS) {
        bits.push((0..INPUTS).filter(|place| row[*place] == 1.0));
    }
    (Arc::new(bits), dense)
}

#[test]
fn binary_inputs_give_the_same_as_their_numbers() {
    let offsets: Arc<[f32]> = (0..INPUTS).map(|i| -(i as f32) / 50.0).collect();
    for rows in [1, 6] {
        for density in [0.0, 0.3, 1.0] {
            let (bits, dense) = bits(rows, density);
            for (scale, offsets) in [(1.0, None), (2.0, Some(offsets.clone()))] {
                let zero = |i: usize| offsets.as_ref().map_or(0.0, |x| x[i % INPUTS]);
                let seen = dense.iter().enumerate();
                let seen: Vec<f32> = seen.map(|(i, x)| scale * x + zero(i)).collect();
                let input = BitInput {
                    bits: bits.clone(),
                    scale,
                    offsets: offsets.clone(),
                };
                assert!(distance(&input.values(), &seen) < 1e-6);
                for outputs in [1, 8, 23, 203] {
                    for slope in [None, Some(0.2)] {
                        let mut layer = Layer::new(rows, outputs, slope);
                        let data = TensorData::new(seen.clone(), [rows, INPUTS]);
                        layer.x = Tensor::from_data(data, &Device::flex());
                        let want = composed_layers(|| layer.affine());
                        let what = format!("{rows}, {density}, {scale}, {outputs}, {slope:?}");
                        let composed = composed_layers(|| layer.of_bits(&input));
                        assert_agree(composed, want.clone(), &what);
                        assert_agree(layer.of_bits(&input), want, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn double_precision_is_left_to_burn() {
    let wide = |x: Tensor<2>| x.inner().cast(DType::F64);
    let layer = Layer::new(3, 4, Some(0.2));
    let bias = layer.bias.inner().cast(DType::F64);
    let y = affine(wide(layer.x), wide(layer.weight), bias, Some(0.2));
    assert_eq!(y.dtype(), DType::F64);
}

#[test]
fn threads_do_not_change_the_bits() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool").install(|| {
            let layer = Layer::new(600, 400, Some(0.2));
            layer.affine()
        })
    };
    assert!(on(1) == on(2) && on(1) == on(3));
}

#[test]
#[should_panic(expected = "place 37 of 37")]
fn a_place_outside_of_a_row_is_refused() {
    BitRows::new(INPUTS).push([INPUTS]);
}

#[test]
#[should_panic(expected = "37 bits a row, a weight [3, 2] and a bias [2]")]
fn shapes_that_do_not_fit_are_refused() {
    let (bits, _) = bits(2, 0.5);
    let input = BitInput {
        bits,
        scale: 1.0,
        offsets: None,
    };
    let _ = bit_affine(&input, uniform(1, [3, 2]), uniform(2, [2]), None);
}
