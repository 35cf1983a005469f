//! Keyed, splittable, counter-based randomness: the same key gives the same bits, on any number of
//! threads.
//!
//! ChaCha8 is a function of (seed, stream, counter), so any part of a stream can be made without
//! the parts before it. A buffer is cut into chunks of a fixed size, and chunk `i` always holds the
//! words from `i * CHUNK` on, whoever fills it.

mod init;
mod stream;
pub(crate) mod words;

pub use stream::KeyStream;

use burn::tensor::{DType, Device, Shape, Tensor, TensorData};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

/// Numbers per chunk: their words fill whole ChaCha blocks, and it is enough work to pay for a task
/// switch.
const CHUNK: usize = 1 << 13;
/// Numbers that are generated and converted in one go; they stay in the first-level cache.
const PIECE: usize = 256;
/// The child key whose streams belong to the elements of [`Key::fill_elements`].
const ELEMENTS: u64 = u64::MAX - 1;

/// The name of a source of random bits.
///
/// It is a value, not a generator: using it twice gives the same bits twice. So each use takes a
/// key of its own, from [`Key::child`] or [`Key::split`], and every function that is random takes
/// a key as its first argument.
///
/// ```
/// use straightflow::Key;
///
/// let key = Key::new(42);
/// let [data, noise] = key.split();
/// assert_eq!(data, key.child(0));
/// assert_ne!(data, noise);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// A key from a small number, such as a `--seed` option.
    pub fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(bytes).child(0)
    }

    /// The key number `index` below this one. Different indices give independent keys.
    ///
    /// Stream 0 of a key is its own output and stream `index + 1` the seed of a child, so that the
    /// two never overlap.
    ///
    /// # Panics
    ///
    /// If `index` is `u64::MAX`.
    pub fn child(self, index: u64) -> Self {
        let stream = index.checked_add(1).expect("an index below u64::MAX");
        let mut seed = [0; 32];
        self.stream(stream, 0).fill_bytes(&mut seed);
        Self(seed)
    }

    /// The first `N` children, one for each use.
    pub fn split<const N: usize>(self) -> [Self; N] {
        std::array::from_fn(|index| self.child(index as u64))
    }

    /// A generator for samplers that use an unknown number of words.
    pub fn generator(self) -> ChaCha8Rng {
        self.stream(0, 0)
    }

    /// The first 32 bytes of the key's own output, a seed for some other generator.
    ///
    /// A key that is used so is used up: numbers that it would give begin with the same bytes.
    pub fn seed(self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.generator().fill_bytes(&mut seed);
        seed
    }

    /// Fills `out` with numbers uniform on the open interval (0, 1), on all threads of the current
    /// rayon pool.
    ///
    /// The numbers have 23 random bits and lie in the middle of their cells. So `1 - u` is exact
    /// and again in (0, 1), and logarithms of both are finite.
    pub fn fill_uniform_f32(self, out: &mut [f32]) {
        self.fill(out, |word: [u8; 4]| {
            ((u32::from_le_bytes(word) >> 9) as f32 + 0.5) / (1u32 << 23) as f32
        });
    }

    /// As [`fill_uniform_f32`](Self::fill_uniform_f32), with 52 random bits.
    pub fn fill_uniform_f64(self, out: &mut [f64]) {
        self.fill(out, |word: [u8; 8]| {
            ((u64::from_le_bytes(word) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
        });
    }

    /// Fills `out` with numbers uniform on (0, 1) that resolve small probabilities: multiples of
    /// 2^-32 near 0, at the price of a coarse, clipped upper end.
    pub(crate) fn fill_fine_f32(self, out: &mut [f32]) {
        const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
        self.fill(out, |word: [u8; 4]| {
            let u = (f64::from(u32::from_le_bytes(word)) + 0.5) / 4_294_967_296.0;
            (u as f32).min(BELOW_ONE)
        });
    }

    /// Fills `out` with one draw per element, each from a generator of its own, so that a sampler
    /// may use as many words as it likes and the result does not depend on who fills what.
    pub fn fill_elements<T: Send>(
        self,
        out: &mut [T],
        draw: impl Fn(usize, &mut ChaCha8Rng) -> T + Sync,
    ) {
        // A task per few elements: a draw costs far more than a uniform number.
        const TASK: usize = 256;
        let streams = self.child(ELEMENTS);
        let fill = |task: usize, chunk: &mut [T]| {
            for (offset, x) in chunk.iter_mut().enumerate() {
                let element = task * TASK + offset;
                *x = draw(element, &mut streams.stream(element as u64, 0));
            }
        };
        if out.len() <= TASK {
            fill(0, out);
        } else {
            out.par_chunks_mut(TASK)
                .enumerate()
                .for_each(|(task, chunk)| fill(task, chunk));
        }
    }

    /// A tensor of numbers uniform on the open interval (0, 1), on no tape: from an autodiff device
    /// its inner device is taken. burn combines such a constant with tensors on a tape.
    ///
    /// Numbers of type `f64` have 52 random bits; every other float type gets 23.
    pub fn uniform<const D: usize>(
        self,
        shape: impl Into<Shape>,
        device: &Device,
        dtype: DType,
    ) -> Tensor<D> {
        let shape = shape.into();
        let data = if dtype == DType::F64 {
            let mut values = vec![0.0f64; shape.num_elements()];
            self.fill_uniform_f64(&mut values);
            TensorData::new(values, shape)
        } else {
            let mut values = vec![0.0f32; shape.num_elements()];
            self.fill_uniform_f32(&mut values);
            TensorData::new(values, shape)
        };
        Tensor::from_data(data, (&device.clone().inner(), dtype))
    }

    fn fill<T: Send, const BYTES: usize>(
        self,
        out: &mut [T],
        convert: impl Fn([u8; BYTES]) -> T + Sync,
    ) {
        if out.len() <= CHUNK {
            self.fill_chunk(0, out, &convert);
        } else {
            out.par_chunks_mut(CHUNK)
                .enumerate()
                .for_each(|(index, chunk)| self.fill_chunk(index, chunk, &convert));
        }
    }

    fn fill_chunk<T, const BYTES: usize>(
        self,
        index: usize,
        out: &mut [T],
        convert: &impl Fn([u8; BYTES]) -> T,
    ) {
        let mut rng = self.stream(0, index * CHUNK * BYTES / 4);
        let mut buffer = vec![0u8; BYTES * PIECE.min(out.len())];
        for piece in out.chunks_mut(PIECE) {
            let bytes = &mut buffer[..BYTES * piece.len()];
            rng.fill_bytes(bytes);
            for (x, word) in piece.iter_mut().zip(bytes.as_chunks::<BYTES>().0) {
                *x = convert(*word);
            }
        }
    }

    fn stream(self, stream: u64, word: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(stream); // resets the position, so it comes first
        rng.set_word_pos(word as u128);
        rng
    }
}

impl std::fmt::Debug for Key {
    /// The first bytes only: enough to tell keys apart in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Key({a:02x}{b:02x}{c:02x}{d:02x}..)")
    }
}
