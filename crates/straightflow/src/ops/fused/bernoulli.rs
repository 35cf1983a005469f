//! The log-probability of binary variables, and its gradients.

#[cfg(feature = "flex")]
use burn::tensor::DType;
use burn::tensor::{Tensor, activation};

#[cfg(feature = "flex")]
use super::flex::{Stored, has_kernels, row_major};
#[cfg(feature = "flex")]
use super::kernel::bits_from_uniform;

/// `sum_j x_j l_j - ln(1 + exp(l_j))` of each row: the logarithm of the probability of `x` under
/// independent Bernoulli variables with logits `l`.
///
/// `logits` is `[r, d]` and `x` is `[s, d]`, where one of `r` and `s` is a multiple of the other.
/// The rows of the shorter one are repeated: row `i` of the longer one meets row `i % len` of the
/// shorter one. The result has one number for each row of the longer one and is on the tapes of
/// both. Nothing is computed for the gradient of an operand that is not tracked.
///
/// Values of `x` are 0 and 1, or whatever else: the function is linear in them. For 0 and 1, each
/// coordinate has full relative precision for logits of any size. The same goes for the gradient
/// by the logits.
///
/// # Panics
///
/// If the numbers of columns or the types differ, or if neither number of rows is a multiple of
/// the other.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::fused::bernoulli_log_prob;
///
/// // One set of logits, two vectors of bits.
/// let device = Device::flex().autodiff();
/// let logits = Tensor::<2>::from_floats([[0.0, 1e4]], &device).require_grad();
/// let bits = Tensor::<2>::from_floats([[1.0, 1.0], [0.0, 0.0]], &device);
/// let log_prob = bernoulli_log_prob(logits.clone(), bits);
/// let values = log_prob.to_data().try_to_vec::<f32>().unwrap();
/// assert!((values[0] + 2f32.ln()).abs() < 1e-6);
/// assert!((values[1] + 2f32.ln() + 1e4).abs() < 1e-3);
///
/// let gradient = logits.grad(&log_prob.sum().backward()).unwrap();
/// assert_eq!(gradient.to_data().try_to_vec::<f32>().unwrap(), [0.0, -1.0]);
/// ```
pub fn bernoulli_log_prob(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
    let ([r, d], [s, columns]) = (logits.dims(), x.dims());
    assert!(
        d == columns && r.max(s).is_multiple_of(r.min(s)),
        "logits {:?} and values {:?}: equal columns, and one number of rows a multiple of the \
         other",
        [r, d],
        [s, columns],
    );
    assert_eq!(logits.dtype(), x.dtype(), "logits and values of one type");

    #[cfg(feature = "flex")]
    if r * s * d > 0 && kernel::fits(&logits, &x) {
        return kernel::log_prob(logits, x);
    }
    composed(logits, x)
}

/// Hard samples `[n, batch, d, 1]` for logits `[batch, d, 1]` on no tape, or `None` if there is no
/// kernel for them. `fill` gives uniform numbers that resolve small ones well: they decide whether
/// the less likely value occurs.
#[cfg_attr(not(feature = "flex"), expect(unused_variables))]
pub(crate) fn bernoulli_sample(
    logits: Tensor<3>,
    n: usize,
    fill: impl FnOnce(&mut [f32]),
) -> Option<Tensor<4>> {
    #[cfg(feature = "flex")]
    if logits.dtype() == DType::F32 && has_kernels(&logits) {
        let [batch, d, k] = logits.dims();
        let mut z = vec![0.0; n * batch * d * k];
        fill(&mut z);
        bits_from_uniform(f32::values(&row_major(logits)), &mut z);
        return Some(f32::new_tensor(z, [n, batch, d, k]));
    }
    None
}

/// [`bernoulli_log_prob`] from tensor operations.
fn composed(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
    let ([r, d], [s, _]) = (logits.dims(), x.dims());
    let shorter = r.min(s);
    let blocks = |rows: usize| [rows / shorter.max(1), shorter, d];
    let logits = logits.reshape(blocks(r));
    let x = x.reshape(blocks(s));
    let one = x.clone() * activation::log_sigmoid(logits.clone());
    let zero = (-x + 1.0) * activation::log_sigmoid(-logits);
    (one + zero).sum_dim(2).reshape([r.max(s)])
}

/// The way through the kernels.
#[cfg(feature = "flex")]
mod kernel {
    use std::sync::Arc;

    use burn::tensor::{DType, Tensor};

    use super::super::flex::{Stored, has_kernels, row_major};
    use super::super::kernel::{Rows, scale_rows};
    use crate::ops::{Rule, custom_grad};

    pub fn fits(logits: &Tensor<2>, x: &Tensor<2>) -> bool {
        has_kernels(&logits.clone().inner()) && has_kernels(&x.clone().inner())
    }

    pub fn log_prob(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
        let [constant_logits, constant_x] = [logits.clone().inner(), x.clone().inner()];
        if logits.is_tracked() && !x.is_tracked() && logits.dims()[0] >= x.dims()[0] {
            return match logits.dtype() {
                DType::F64 => with_slopes::<f64>(logits, constant_x),
                _ => with_slopes::<f32>(logits, constant_x),
            };
        }
        let value = match logits.dtype() {
            DType::F64 => value::<f64>(constant_logits.clone(), constant_x.clone()),
            _ => value::<f32>(constant_logits.clone(), constant_x.clone()),
        };
        let by_logits = Arc::new(ByLogits { x: constant_x });
        if !x.is_tracked() {
            return custom_grad(logits, value, by_logits);
        }
        let by_x = Arc::new(ByX {
            logits: constant_logits,
        });
        if !logits.is_tracked() {
            return custom_grad(x, value, by_x);
        }
        let zeros = value.zeros_like();
        custom_grad(logits, value, by_logits) + custom_grad(x, zeros, by_x)
    }

    /// The way of a training: the derivatives are computed with the values.
    fn with_slopes<R: Stored>(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
        let shape = logits.dims();
        let (constant, x) = (row_major(logits.clone().inner()), row_major(x));
        let rows = Rows {
            logits: R::values(&constant),
            x: R::values(&x),
            d: shape[1],
        };
        let (value, slopes) = rows.log_prob_and_slopes();
        let slopes = R::new_tensor(slopes, shape);
        custom_grad(
            logits,
            R::new_tensor(value, [shape[0]]),
            Arc::new(BySlopes { slopes }),
        )
    }

    fn value<R: Stored>(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
        let rows = logits.dims()[0].max(x.dims()[0]);
        R::new_tensor(
            with_rows(logits, x, |rows: Rows<R>| rows.log_prob()),
            [rows],
        )
    }

    fn with_rows<R: Stored>(
        logits: Tensor<2>,
        x: Tensor<2>,
        kernel: impl FnOnce(Rows<R>) -> Vec<R>,
    ) -> Vec<R> {
        let d = logits.dims()[1];
        let (logits, x) = (row_major(logits), row_major(x));
        kernel(Rows {
            logits: R::values(&logits),
            x: R::values(&x),
            d,
        })
    }

    /// `g` times the slopes that the forward pass has left.
    #[derive(Debug)]
    struct BySlopes {
        slopes: Tensor<2>,
    }

    impl BySlopes {
        fn gradient<R: Stored>(&self, grad: Tensor<1>) -> Tensor<2> {
            let shape = self.slopes.dims();
            let (slopes, grad) = (row_major(self.slopes.clone()), row_major(grad));
            let gradient = scale_rows(R::values(&slopes), shape[1], R::values(&grad));
            R::new_tensor(gradient, shape)
        }
    }

    impl Rule<2, 1> for BySlopes {
        fn backward(&self, logits: Tensor<2>, _value: Tensor<1>, grad: Tensor<1>) -> Tensor<2> {
            match logits.dtype() {
                DType::F64 => self.gradient::<f64>(grad),
                _ => self.gradient::<f32>(grad),
            }
        }
    }

    /// `g (x - sigmoid(l))`, summed over repetitions.
    #[derive(Debug)]
    struct ByLogits {
        x: Tensor<2>,
    }

    impl ByLogits {
        fn gradient<R: Stored>(&self, logits: Tensor<2>, grad: Tensor<1>) -> Tensor<2> {
            let shape = logits.dims();
            let grad = row_major(grad);
            let gradient = with_rows(logits, self.x.clone(), |rows| {
                rows.gradient_by_logits(R::values(&grad))
            });
            R::new_tensor(gradient, shape)
        }
    }

    impl Rule<2, 1> for ByLogits {
        fn backward(&self, logits: Tensor<2>, _value: Tensor<1>, grad: Tensor<1>) -> Tensor<2> {
            match logits.dtype() {
                DType::F64 => self.gradient::<f64>(logits, grad),
                _ => self.gradient::<f32>(logits, grad),
            }
        }
    }

    /// `g l`, summed over repetitions.
    #[derive(Debug)]
    struct ByX {
        logits: Tensor<2>,
    }

    impl ByX {
        fn gradient<R: Stored>(&self, x: Tensor<2>, grad: Tensor<1>) -> Tensor<2> {
            let shape = x.dims();
            let grad = row_major(grad);
            let gradient = with_rows(self.logits.clone(), x, |rows| {
                rows.gradient_by_x(R::values(&grad))
            });
            R::new_tensor(gradient, shape)
        }
    }

    impl Rule<2, 1> for ByX {
        fn backward(&self, x: Tensor<2>, _value: Tensor<1>, grad: Tensor<1>) -> Tensor<2> {
            match x.dtype() {
                DType::F64 => self.gradient::<f64>(x, grad),
                _ => self.gradient::<f32>(x, grad),
            }
        }
    }
}
