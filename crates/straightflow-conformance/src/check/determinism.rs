//! The same key gives the same bits, on one thread and on two; another key gives others.

use burn::tensor::DType;
use rayon::ThreadPoolBuilder;
use straightflow::Key;

use crate::device::dtypes;
use crate::gradients::{elements_per_call, gradient};
use crate::product::Product;
use crate::subject::{Failure, Subject};

/// Enough elements that every parallel loop of the library is split, and few on a device, for which the
/// loops of the host are the same.
fn batch() -> usize {
    match dtypes() {
        [_] => 16,
        _ => 9_000,
    }
}

pub fn determinism(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        // Three variables: on one of them an estimate may be exact, and then every key gives the
        // same.
        let product = Product::of(kind);
        let fail = |found: &str| subject.failure("determinism", &product, found);
        let bits = |key: u64, threads: usize| -> Result<Vec<u64>, Failure> {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            let work = || {
                let estimator = subject.estimator();
                let most = elements_per_call(estimator.as_ref(), &product.law(1, DType::F32));
                let law = product.law(batch().min(most), DType::F32);
                let cost = |z| product.cost(z);
                gradient(estimator.as_ref(), Key::new(key), &law, &cost)
            };
            let gradient = pool.expect("a thread pool").install(work);
            let gradient = gradient.map_err(|error| fail(&error.to_string()))?;
            Ok(gradient.into_iter().map(f64::to_bits).collect())
        };
        let first = bits(1, 1)?;
        if bits(1, 1)? != first {
            return Err(fail("the same key gives other bits"));
        }
        if bits(1, 2)? != first {
            return Err(fail("two threads give other bits than one"));
        }
        let estimator = subject.estimator();
        let noise = estimator.noise(&product.law(1, DType::F32), estimator.draws());
        if !noise.is_empty() && bits(2, 1)? == first {
            return Err(fail("another key gives the same bits"));
        }
    }
    Ok(())
}
