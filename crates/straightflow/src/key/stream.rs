//! Keys that are counted.

use std::fmt;

use burn::module::{
    Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;

use super::Key;
use super::words::{Words, count, set_count, stays_on_the_host};

/// The child key whose children an evaluation gets.
const EVALUATION: u64 = u64::MAX - 2;

/// A new key for each use, for a training loop or a model to hold.
///
/// The keys are the children of one key, in order. The stream is a burn module, so a model that has
/// one as a field draws in its forward pass without an argument for the key, as in burn's own
/// learner, and the model's record has the key and the count: a loaded model goes on where the saved
/// one was.
///
/// Copies share the count, so no key is given out twice. After
/// [`valid()`](burn::module::Module::valid) a stream starts over with keys of its own: evaluations
/// draw the same numbers each time, and do not change what training draws.
///
/// ```
/// use burn::module::Module;
/// use straightflow::prelude::*;
///
/// let keys = KeyStream::new(Key::new(1));
/// assert_eq!(keys.next(), Key::new(1).child(0));
/// assert_eq!(keys.next(), Key::new(1).child(1));
///
/// let record = keys.clone().into_record();
/// let resumed = KeyStream::new(Key::new(99)).load_record(record);
/// assert_eq!(resumed.next(), keys.next());
/// ```
#[derive(Clone, Debug)]
pub struct KeyStream {
    /// The count, then the key.
    words: Words<10>,
}

impl KeyStream {
    /// The children of a key, from the first on.
    pub fn new(key: Key) -> Self {
        Self::starting_at(key, 0)
    }

    /// The children of a key from number `start` on: the stream that had given out so many.
    pub fn starting_at(key: Key, start: u64) -> Self {
        let mut words = [0; 10];
        set_count(&mut words, start);
        for (word, bytes) in words[2..].iter_mut().zip(key.0.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let words = Words::new(words);
        Self { words }
    }

    /// The next key.
    pub fn next(&self) -> Key {
        self.words.change(|words| {
            let index = count(words);
            set_count(words, index + 1);
            key(words).child(index)
        })
    }

    /// The number of keys that were given out.
    pub fn count(&self) -> u64 {
        count(&self.words.get())
    }
}

fn key(words: &[u32; 10]) -> Key {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&words[2..]) {
        *bytes = word.to_le_bytes();
    }
    Key(bytes)
}

impl Module for KeyStream {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.words.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let words = self.words.map(mapper);
        Self { words }
    }

    fn valid(&self) -> Self {
        Self::new(key(&self.words.get()).child(EVALUATION))
    }

    stays_on_the_host!();
}

impl fmt::Display for KeyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyStream({} keys given out)", self.count())
    }
}

impl ModuleDisplayDefault for KeyStream {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&self.to_string()).optional()
    }
}

impl ModuleDisplay for KeyStream {}
