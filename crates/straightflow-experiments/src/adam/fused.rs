//! The step as one loop over slices. It runs on one thread, and products are rounded before they are
//! added, so it has the same bits on every CPU.

use burn::backend::{Flex, flex::FlexTensor};
use burn::tensor::{DType, Tensor};

use super::{AdamConfig, Step, Tensors};

/// Whether all tensors are of the flex backend, on no tape, and of one type that the loop knows.
pub fn fits<const D: usize>(tensors: &Tensors<D>, grad: &Tensor<D>) -> bool {
    let dtype = grad.dtype();
    matches!(dtype, DType::F32 | DType::F64)
        && [
            &tensors.parameter,
            &tensors.moment_1,
            &tensors.moment_2,
            grad,
        ]
        .into_iter()
        .all(|x| x.dtype() == dtype && x.clone().try_into_primitive::<Flex>().is_ok())
}

pub fn update<const D: usize>(
    tensors: Tensors<D>,
    config: &AdamConfig,
    rate: f64,
    time: usize,
    grad: Tensor<D>,
) -> Tensors<D> {
    if grad.dtype() == DType::F64 {
        return update_f64(tensors, Step::new(config, rate, time), grad);
    }
    // The loop has decays in single precision, and the corrections have to belong to them.
    let single = |beta: f64| f64::from(beta as f32);
    let config = AdamConfig {
        beta_1: single(config.beta_1),
        beta_2: single(config.beta_2),
        epsilon: config.epsilon,
    };
    update_f32(tensors, Step::new(&config, rate, time), grad)
}

macro_rules! update_as {
    ($name:ident, $real:ty) => {
        fn $name<const D: usize>(tensors: Tensors<D>, step: Step, grad: Tensor<D>) -> Tensors<D> {
            let grad = row_major(grad);
            let [mut p, mut m, mut v] =
                [tensors.parameter, tensors.moment_1, tensors.moment_2].map(row_major);
            {
                let g: &[$real] = grad.as_slice().expect("row-major order");
                let [p, m, v] = [&mut p, &mut m, &mut v].map(|x| {
                    let (start, end) = x.layout().contiguous_offsets().expect("row-major order");
                    // A buffer that others use too is copied before.
                    &mut x.storage_mut::<$real>()[start..end]
                });
                let [beta_1, beta_2, rate, epsilon] =
                    [step.beta_1, step.beta_2, step.rate, step.epsilon].map(|x| x as $real);
                let (rest_1, rest_2) = (1.0 - beta_1, 1.0 - beta_2);
                vectorised(
                    #[inline(always)]
                    || {
                        for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
                            *m = beta_1 * *m + rest_1 * *g;
                            *v = beta_2 * *v + rest_2 * (*g * *g);
                            *p -= rate * *m / (v.sqrt() + epsilon);
                        }
                    },
                );
            }
            let [parameter, moment_1, moment_2] = [p, m, v].map(Tensor::from_primitive::<Flex>);
            Tensors {
                parameter,
                moment_1,
                moment_2,
            }
        }
    };
}

update_as!(update_f32, f32);
update_as!(update_f64, f64);

/// The tensor behind a tensor that [`fits`]. It is copied only if it is not in that order yet.
fn row_major<const D: usize>(x: Tensor<D>) -> FlexTensor {
    let x = x.try_into_primitive::<Flex>();
    let x = x.expect("a tensor of the flex backend, on no tape");
    match x.is_contiguous() {
        true => x,
        false => x.to_contiguous(),
    }
}

/// Runs a loop with the best instructions of this CPU; see the library's `ops::fused` for why not
/// `pulp::Arch`.
fn vectorised(work: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(avx_512) = pulp::x86::V4::try_new() {
            return avx_512.vectorize(work);
        }
        if let Some(avx_2) = pulp::x86::V3::try_new() {
            return avx_2.vectorize(work);
        }
    }
    work();
}
