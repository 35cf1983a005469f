//! Parameters of any rank: the numbers are those of `[batch, d]`, in another shape.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::Law;
use straightflow::prelude::*;

use crate::support::{leaf, tensor, values};

/// Two batch elements of 12 numbers.
fn logits() -> Vec<f64> {
    (0..24).map(|i| (f64::from(i) * 0.9).sin()).collect()
}

/// Draws, samples, densities and estimates of Bernoulli and Poisson variables in one more rank.
macro_rules! numbers {
    ($test:ident, $shape:expr, $more:expr) => {
        #[test]
        fn $test() {
            let (shape, more) = ($shape, $more);
            let count: usize = shape.iter().product();
            let flat = [shape[0], count / shape[0]];
            let numbers = &logits()[..count];
            let (flat_leaf, own_leaf) = (
                leaf(numbers, flat, DType::F64),
                leaf(numbers, shape, DType::F64),
            );
            for spec in [
                "straight-through",
                "arm",
                "relax:control=sum",
                "muprop",
                "rebar",
            ] {
                let same = Bernoulli::from_logits(flat_leaf.clone()).expect("valid");
                let q = Bernoulli::from_logits(own_leaf.clone()).expect("valid");
                let method = estimator(spec).expect("known");
                let state = StateShape::of(q.law(), 0);
                let state = method.init_state(Key::new(3), state, &own_leaf.device());
                let method = match state {
                    Some(state) => method.bind(&state, None).expect("its own state"),
                    None => method,
                };
                // The cost of an element: neither quadratic nor a sum over coordinates.
                let other = method.estimate(Key::new(4), &same, |z| (z * 0.3).sum_dim(2).sin());
                let estimate = method.estimate(Key::new(4), &q, |z| {
                    assert_eq!(z.dims()[1..], more[1..]);
                    let [n, batch, ..] = z.dims();
                    (z.reshape([n, batch, count / batch]) * 0.3)
                        .sum_dim(2)
                        .sin()
                });
                let (other, estimate) = (other.expect(spec), estimate.expect(spec));
                assert_eq!(estimate.samples[0].dims()[1..], more[1..], "{spec}");
                assert_eq!(values(other.values), values(estimate.values), "{spec}");
                let want = flat_leaf
                    .grad(&other.surrogate.backward())
                    .expect("a gradient");
                let got = own_leaf
                    .grad(&estimate.surrogate.backward())
                    .expect("a gradient");
                assert_eq!(got.dims(), shape);
                assert_eq!(values(got), values(want), "{spec}");
            }
            let same = Poisson::from_log_rates(tensor(numbers, flat, DType::F64)).expect("valid");
            let q = Poisson::from_log_rates(tensor(numbers, shape, DType::F64)).expect("valid");
            assert_eq!(q.draw(Key::new(1)).dims(), shape);
            let z = q.sample(Key::new(2), 1);
            assert_eq!(z.dims(), more);
            assert_eq!(values(z.clone()), values(same.sample(Key::new(2), 1)));
            assert_eq!(q.mean().dims(), shape);
            assert_eq!(values(q.variance()), values(same.variance()));
            let flat_z = z.clone().reshape([1, flat[0], flat[1]]);
            assert_eq!(values(q.log_prob(z)), values(same.log_prob(flat_z)));
            assert_eq!(values(q.log_rates()), numbers);
            assert!(
                values(q.kl(&q.constant()).expect("the same shape"))
                    .iter()
                    .all(|x| *x == 0.0)
            );
            let method = StraightThrough::default();
            assert_eq!(
                method.draw(Key::new(1), &q).expect("supported").dims(),
                shape
            );
            let gradient = method.gradient(Key::new(1), &q, |z| {
                let [n, batch, ..] = z.dims();
                z.reshape([n, batch, count / batch]).sum_dim(2)
            });
            assert_eq!(gradient.expect("supported").dims(), shape);
        }
    };
}

numbers!(rank_1, [2], [1, 2]);
numbers!(rank_2, [2, 4], [1, 2, 4]);
numbers!(rank_3, [2, 3, 2], [1, 2, 3, 2]);
numbers!(rank_4, [2, 1, 3, 4], [1, 2, 1, 3, 4]);
numbers!(rank_5, [2, 1, 2, 3, 2], [1, 2, 1, 2, 3, 2]);
numbers!(rank_6, [2, 1, 2, 1, 3, 2], [1, 2, 1, 2, 1, 3, 2]);

macro_rules! vectors {
    ($test:ident, $shape:expr, $more:expr) => {
        #[test]
        fn $test() {
            let (shape, more) = ($shape, $more);
            let count: usize = shape.iter().product();
            let k = shape[shape.len() - 1];
            let numbers = &logits()[..count];
            let flat = [shape[0], count / shape[0] / k, k];
            let same = Categorical::from_logits(tensor(numbers, flat, DType::F64)).expect("valid");
            let parameters = leaf(numbers, shape, DType::F64);
            let q = Categorical::from_logits(parameters.clone()).expect("valid");
            let z = estimator("reinmax")
                .expect("known")
                .draw(Key::new(1), &q)
                .expect("valid");
            assert_eq!(z.dims(), shape);
            assert_eq!(
                values(z.clone()),
                values(same.law().sample(Key::new(1).child(0), 1))
            );
            let grads = (z * 0.7).square().sum().backward();
            assert_eq!(parameters.grad(&grads).expect("a gradient").dims(), shape);
            assert_eq!(q.sample(Key::new(2), 1).dims(), more);
            assert_eq!(values(q.mean()), values(same.mean()));
            assert_eq!(
                values(q.entropy().expect("closed")),
                values(same.entropy().expect("closed"))
            );
        }
    };
}

vectors!(vectors_of_rank_2, [2, 3], [1, 2, 3]);
vectors!(vectors_of_rank_3, [2, 2, 3], [1, 2, 2, 3]);
vectors!(vectors_of_rank_4, [2, 2, 1, 3], [1, 2, 2, 1, 3]);
vectors!(vectors_of_rank_5, [2, 1, 2, 1, 3], [1, 2, 1, 2, 1, 3]);
vectors!(vectors_of_rank_6, [2, 1, 1, 2, 1, 3], [1, 2, 1, 1, 2, 1, 3]);

/// Errors speak of the shape that was given.
#[test]
fn errors_have_the_users_shape() {
    let mut numbers = logits();
    numbers[17] = f64::NAN;
    let q = Bernoulli::from_logits(tensor(&numbers, [2, 3, 2, 2], DType::F64)).expect("a shape");
    let Err(Error::Parameter { index, .. }) = q.validate() else {
        panic!("a NaN was let through");
    };
    assert_eq!(index, [1, 1, 0, 1]);
    let empty = Bernoulli::from_logits(Tensor::<4>::zeros([2, 0, 1, 1], &Default::default()));
    let Err(Error::EmptyShape { shape, .. }) = empty else {
        panic!("an empty shape was let through");
    };
    assert_eq!(shape, [2, 0, 1, 1]);
}

/// Samples of another shape are not reinterpreted.
#[test]
#[should_panic(expected = "samples of shape [1, 2, 4, 3]")]
fn samples_of_another_shape_are_refused() {
    let q = Bernoulli::from_logits(tensor(&logits(), [2, 3, 4], DType::F64)).expect("valid");
    q.log_prob(Tensor::zeros([1, 2, 4, 3], &Default::default()));
}

/// A law knows the rank that it came with, and can always be seen as `[batch, d]`.
#[test]
fn laws_keep_their_rank() {
    let q = Bernoulli::from_logits(tensor(&logits(), [2, 3, 4], DType::F64)).expect("valid");
    let law: Law = q.law().leaf();
    assert_eq!(
        Bernoulli::<3>::from_law(law.clone()).logits().dims(),
        [2, 3, 4]
    );
    assert_eq!(
        Bernoulli::<2>::from_law(law.clone()).logits().dims(),
        [2, 12]
    );
    assert_eq!(Distribution::natural(&law).dims(), [2, 12, 1]);
}

/// Two layers of maps: the logits of the second are a function of the first.
struct Maps {
    logits: Tensor<4>,
}

impl Objective<Bernoulli<4>> for Maps {
    fn layers(&self) -> usize {
        2
    }

    fn layer(&self, below: &[Tensor<5>]) -> Result<Bernoulli<4>> {
        match below {
            [] => Bernoulli::from_logits(self.logits.clone()),
            // A map of 3 x 2 to one of 2 x 2.
            [z, ..] => {
                let rows: Tensor<4> = z.clone().flatten(0, 1);
                Bernoulli::from_logits(rows.narrow(2, 0, 2) * 0.7 - 0.2)
            }
        }
    }

    fn cost(&self, z: &[Tensor<5>], q: &[Bernoulli<4>]) -> Result<Tensor<2>> {
        assert_eq!(q[0].logits().dims()[1..], [1, 3, 2]);
        assert_eq!(q[1].logits().dims()[1..], [1, 2, 2]);
        let sum = |z: &Tensor<5>| {
            z.clone()
                .sum_dims(&[2, 3, 4])
                .reshape([z.dims()[0], z.dims()[1]])
        };
        let (low, high): (Tensor<2>, Tensor<2>) = (sum(&z[0]), sum(&z[1]));
        Ok((low * 0.4 + high * 0.3).sin())
    }
}

#[test]
fn layers_have_any_rank() {
    let numbers = &logits()[..12];
    for spec in ["straight-through", "arm", "rebar", "reinforce"] {
        let model = Maps {
            logits: leaf(numbers, [2, 1, 3, 2], DType::F64),
        };
        let method = estimator(spec).expect("known");
        let laws = [6, 4].map(|d| {
            let law = Bernoulli::from_logits(Tensor::<2>::zeros([2, d], &model.logits.device()));
            law.expect("valid").law().clone()
        });
        let shapes = StateShape::stacked(&laws, 0).into_iter();
        let shapes: Vec<StateShape> = shapes
            .map(|shape| StateShape {
                dtype: DType::F64,
                ..shape
            })
            .collect();
        let state = State::stacked(
            method.as_ref(),
            Key::new(1),
            &shapes,
            &model.logits.device(),
        );
        let method = match state {
            Some(state) => method.bind(&state, None).expect("its own state"),
            None => method,
        };
        let estimate = method.estimate_objective(Key::new(2), &model).expect(spec);
        assert_eq!(estimate.samples[0].dims()[1..], [2, 1, 3, 2], "{spec}");
        assert_eq!(estimate.samples[1].dims()[1..], [2, 1, 2, 2], "{spec}");
        let grads = estimate.surrogate.backward();
        let gradient = values(model.logits.grad(&grads).expect("a gradient"));
        assert!(gradient.iter().any(|x| *x != 0.0), "{spec}");
    }
}
