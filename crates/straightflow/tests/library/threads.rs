//! The same key gives the same bits, on any number of threads.

use burn::nn::LinearConfig;
use burn::tensor::{DType, Device, Tensor};
use chacha20::rand_core::Rng;
use rayon::ThreadPoolBuilder;
use straightflow::distribution::{Family, Law};
use straightflow::estimator::{Noise, NoiseSpec};
use straightflow::prelude::*;

use crate::support::{tensor, values};

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a thread pool").install(work)
}

/// The bits of a computation on one thread and on two and three.
fn assert_same_bits(what: &str, work: impl Fn() -> Vec<f64> + Sync) {
    let bits = |x: Vec<f64>| -> Vec<u64> { x.into_iter().map(f64::to_bits).collect() };
    let one = bits(on_threads(1, &work));
    for threads in [2, 3] {
        assert!(
            one == bits(on_threads(threads, &work)),
            "{what}: {threads} threads differ"
        );
    }
}

#[test]
fn uniform_numbers() {
    for len in [1, 17, 10_000, 40_000, 1_000_003] {
        assert_same_bits("f32", || {
            let mut out = vec![0.0f32; len];
            Key::new(42).fill_uniform_f32(&mut out);
            out.into_iter().map(f64::from).collect()
        });
        assert_same_bits("f64", || {
            let mut out = vec![0.0f64; len];
            Key::new(42).fill_uniform_f64(&mut out);
            out
        });
    }
}

/// A longer fill begins with the shorter one, and is the generator's own stream.
#[test]
fn bits_depend_on_the_position_only() {
    let fill = |len: usize| {
        let mut out = vec![0.0f64; len];
        Key::new(7).fill_uniform_f64(&mut out);
        out
    };
    let long = fill(50_000);
    assert_eq!(long[..12_345], fill(12_345));
    let mut generator = Key::new(7).generator();
    for x in &long {
        let word = generator.next_u64();
        assert_eq!(*x, ((word >> 12) as f64 + 0.5) / 4_503_599_627_370_496.0);
    }
    assert!(long.iter().all(|x| *x > 0.0 && *x < 1.0));
}

/// The first numbers of a key are part of the interface: a change is a changelog event.
#[test]
fn the_stream_is_pinned() {
    let mut f64s = [0.0; 3];
    Key::new(1).fill_uniform_f64(&mut f64s);
    let mut f32s = [0.0; 3];
    Key::new(1).child(5).fill_uniform_f32(&mut f32s);
    assert_eq!(f64s, PINNED_F64);
    assert_eq!(f32s, PINNED_F32);
}

const PINNED_F64: [f64; 3] = [0.9939542277555503, 0.930008224158786, 0.4745726139969014];
const PINNED_F32: [f32; 3] = [0.0155697465, 0.8502808, 0.07456857];

/// The seed of another generator is the beginning of the key's own stream, and no child's key.
#[test]
fn a_seed_is_the_first_output() {
    let key = Key::new(7);
    let mut own = [0; 32];
    key.generator().fill_bytes(&mut own);
    assert_eq!(key.seed(), own);
    let [child] = key.split();
    assert_ne!(key.seed(), child.seed());
    assert_ne!(key.seed(), Key::new(8).seed());
}

#[test]
fn keys_differ_from_their_children_and_each_other() {
    let key = Key::new(3);
    let [a, b, c] = key.split();
    let keys = [key, a, b, c, a.child(0), Key::new(4)];
    for (i, x) in keys.iter().enumerate() {
        assert!(keys[..i].iter().all(|y| x != y));
    }
    let first = |key: Key| {
        let mut out = [0.0; 4];
        key.fill_uniform_f64(&mut out);
        out
    };
    assert_eq!(first(a), first(key.child(0)));
    assert_ne!(first(a), first(b));
}

/// Each noise tensor of an estimate has a key of its own, and so has each draw.
#[test]
fn noise_is_never_reused() {
    let natural = tensor(&[0.3, -0.2], [1, 2, 1], DType::F64);
    let law = Law::new(Family::Bernoulli, natural).expect("valid");
    let shape = law.sample_dims(2);
    let specs = [
        NoiseSpec::uniform("first", shape),
        NoiseSpec::uniform("second", shape),
    ];
    let noise = Noise::draw(Key::new(6), &law, &specs);
    let mut all = values(noise.get(0));
    all.extend(values(noise.get(1)));
    all.sort_by(f64::total_cmp);
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
}

#[test]
fn samples_of_every_family() {
    for (family, k) in [
        (Family::Bernoulli, 1),
        (Family::Categorical, 4),
        (Family::Poisson, 1),
        (Family::Binomial { trials: 30 }, 1),
        (Family::NegativeBinomial { dispersion: 0.7 }, 1),
    ] {
        let natural: Vec<f64> = (0..20 * 30 * k).map(|i| (i as f64).sin() * 3.0).collect();
        let law = Law::new(family, tensor(&natural, [20, 30, k], DType::F32)).expect("valid");
        assert_same_bits(&format!("{family:?}"), || {
            values(law.sample(Key::new(5), 7))
        });
        // log q goes through the host's threads.
        let z = law.sample(Key::new(5), 7);
        assert_same_bits(&format!("{family:?}"), || values(law.log_prob(z.clone())));
    }
}

/// A whole estimate, with matrix products large enough to be shared out among threads.
#[test]
fn gradients_of_a_network() {
    assert_same_bits("network", || {
        let device = Device::flex().autodiff();
        let mut layer = LinearConfig::new(300, 200).init(&device);
        let weights = Key::new(8).uniform::<2>([300, 200], &device, DType::F32) * 0.2 - 0.1;
        layer.weight = burn::module::Param::from_tensor(Tensor::from_inner(weights));
        layer.bias = None;
        let x = Key::new(9).uniform::<2>([64, 300], &device, DType::F32);
        let q = Bernoulli::from_logits(layer.forward(Tensor::from_inner(x))).expect("valid");
        let st = StraightThroughConfig { samples: 10 }.init().expect("valid");
        let estimate = st.estimate(Key::new(10), &q, |z| {
            (z * 0.3 - 0.1).tanh().square().sum_dim(2)
        });
        let estimate = estimate.expect("valid");
        let grads = estimate.surrogate.backward();
        let mut all = values(layer.weight.val().grad(&grads).expect("gradient"));
        all.extend(values(estimate.surrogate));
        all
    });
}
