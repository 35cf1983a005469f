//! Bad input is a typed error that names what was wrong.

use burn::tensor::{DType, Device, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::prelude::*;

use crate::support::{tensor, values};

fn sum(z: Tensor<3>) -> Tensor<2> {
    z.sum_dim(2).squeeze_dim(2)
}

fn bernoulli(logits: &[f64]) -> Bernoulli {
    Bernoulli::from_logits(tensor(logits, [1, logits.len()], DType::F32)).expect("valid shape")
}

#[test]
fn shapes_and_fixed_numbers_are_checked_by_constructors() {
    let empty = Bernoulli::from_logits(Tensor::<2>::zeros([0, 3], &Device::flex()));
    let error = empty.expect_err("an empty batch");
    assert_eq!(
        error,
        Error::EmptyShape {
            family: FamilyKind::Bernoulli,
            shape: vec![0, 3]
        }
    );
    assert_eq!(
        error.to_string(),
        "the parameters of a bernoulli distribution have shape [0, 3], but no dimension may be 0"
    );
    let single = Categorical::from_logits(Tensor::<3>::zeros([2, 3, 1], &Device::flex()));
    assert_eq!(
        single.expect_err("one category"),
        Error::TooFewCategories {
            shape: vec![2, 3, 1]
        }
    );
    let zeros = || Tensor::<2>::zeros([1, 1], &Device::flex());
    assert_eq!(
        Binomial::from_logits(0, zeros()).expect_err("no trials"),
        Error::NoTrials
    );
    for dispersion in [0.0, -1.0, f64::INFINITY] {
        let refused = NegativeBinomial::from_log_means(dispersion, zeros());
        assert_eq!(refused.expect_err("bad"), Error::Dispersion { dispersion });
    }
    assert!(NegativeBinomial::from_means(f64::NAN, zeros()).is_err());
}

#[test]
fn values_are_found_by_validate_and_by_estimate() {
    let q = bernoulli(&[0.0, f64::NAN]);
    let Err(Error::Parameter {
        index,
        value,
        parameter,
        ..
    }) = q.validate()
    else {
        panic!("NaN was not found");
    };
    assert_eq!((index, parameter), (vec![0, 1], "logit"));
    assert!(value.is_nan());
    let st = StraightThrough::default();
    assert!(matches!(
        st.estimate(Key::new(1), &q, sum),
        Err(Error::Parameter { .. })
    ));
    assert!(matches!(
        st.draw(Key::new(1), &q),
        Err(Error::Parameter { .. })
    ));
    assert!(matches!(
        Exact::default().gradient(&q, sum),
        Err(Error::Parameter { .. })
    ));
    assert!(bernoulli(&[f64::INFINITY]).validate().is_err());
    assert!(bernoulli(&[1e4]).validate().is_ok());
}

#[test]
fn means_out_of_range_are_named_as_they_were_given() {
    let rates = tensor(&[3.0, 1.0, -2.0, 1.0], [2, 2], DType::F64);
    let error = Poisson::from_rates(rates).expect("valid shape").validate();
    assert_eq!(
        error.expect_err("a negative rate").to_string(),
        "the mean of a poisson distribution at index [1, 0] is -2: it must be positive and finite"
    );
    for bad in [-0.1, 0.0, 1.0, 1.2, f64::NAN] {
        let q = Bernoulli::from_means(tensor(&[0.5, bad], [1, 2], DType::F64));
        assert!(q.expect("valid shape").validate().is_err(), "{bad}");
    }
    let q = Binomial::from_means(4, tensor(&[4.5], [1, 1], DType::F64)).expect("valid shape");
    assert!(q.validate().is_err());
    let q = Bernoulli::from_means(tensor(&[0.25], [1, 1], DType::F64)).expect("valid shape");
    q.validate().expect("a probability");
    assert!((values(q.mean())[0] - 0.25).abs() < 1e-15);
    assert!((values(q.logits())[0] - (1.0f64 / 3.0).ln()).abs() < 1e-15);
}

#[test]
fn costs_are_checked() {
    let q = bernoulli(&[0.1, 0.2]);
    let st = StraightThroughConfig { samples: 3 }.init().expect("valid");
    let wrong = st.estimate(Key::new(1), &q, |z| z.sum_dim(0).squeeze_dim::<2>(0));
    assert_eq!(
        wrong.expect_err("the wrong dimension was summed"),
        Error::CostShape {
            expected: [3, 1],
            got: vec![1, 2]
        }
    );
    let nan = st.estimate(Key::new(1), &q, |z| {
        let [n, ..] = z.dims();
        let poison = tensor(&[0.0, f64::NAN, 0.0], [n, 1], DType::F32);
        sum(z) + poison
    });
    let Err(Error::NonFiniteCost {
        draw,
        element,
        value,
    }) = nan
    else {
        panic!("NaN was not found");
    };
    assert_eq!((draw, element), (1, 0));
    assert!(value.is_nan());
}

#[test]
fn noise_is_checked() {
    let q = bernoulli(&[0.1, 0.2]);
    let st = StraightThrough::default();
    let none = st.estimate(Vec::<Tensor<4>>::new(), &q, sum);
    assert_eq!(
        none.expect_err("no noise"),
        Error::NoiseCount {
            expected: 1,
            got: 0
        }
    );
    let wide = vec![tensor::<4>(&[0.0; 3], [1, 1, 3, 1], DType::F32)];
    assert_eq!(
        st.estimate(wide, &q, sum).expect_err("three coordinates"),
        Error::NoiseShape {
            name: "samples",
            expected: [1, 1, 2, 1],
            got: [1, 1, 3, 1]
        }
    );
}

#[test]
fn divergences_need_two_of_a_kind() {
    let zeros = |batch, d| Tensor::zeros([batch, d, 1], &Device::flex());
    let law = |family, batch, d| Law::new(family, zeros(batch, d)).expect("valid");
    let q = law(Family::Binomial { trials: 3 }, 4, 2);
    for other in [
        law(Family::Binomial { trials: 4 }, 4, 2),
        law(Family::Bernoulli, 4, 2),
        law(Family::Binomial { trials: 3 }, 3, 2),
        law(Family::Binomial { trials: 3 }, 4, 1),
    ] {
        assert!(matches!(q.kl(&other), Err(Error::Mismatch { .. })));
    }
    let shared = law(Family::Binomial { trials: 3 }, 1, 2);
    assert_eq!(q.kl(&shared).expect("one prior for all").dims(), [4]);
    assert_eq!(
        q.entropy().expect_err("no closed form"),
        Error::NoClosedForm {
            quantity: "entropy",
            family: FamilyKind::Binomial
        }
    );
}
