//! Keys that are counted, saved and restored.

use std::collections::HashSet;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::store::ModuleRecord;
use burn::tensor::Device;
use straightflow::prelude::*;

#[derive(Module, Debug)]
struct Model {
    layer: Linear,
    keys: KeyStream,
}

fn model(seed: u64) -> Model {
    Model {
        layer: LinearConfig::new(2, 2).init(&Device::flex().autodiff()),
        keys: KeyStream::new(Key::new(seed)),
    }
}

#[test]
fn keys_are_the_children_in_order() {
    let keys = KeyStream::starting_at(Key::new(3), u64::from(u32::MAX));
    for index in [u64::from(u32::MAX), 1 << 32, (1 << 32) + 1] {
        assert_eq!(keys.count(), index);
        assert_eq!(keys.next(), Key::new(3).child(index));
    }
}

/// A model that was saved after some keys goes on with the next one, through bytes.
#[test]
fn a_record_has_key_and_count() {
    let saved = model(1);
    let first: Vec<Key> = (0..5).map(|_| saved.keys.next()).collect();
    let bytes = saved.clone().into_record().into_bytes().expect("a record");
    let record = ModuleRecord::from_bytes(bytes).expect("its own");
    let loaded = model(2).load_record(record);
    assert_eq!(loaded.keys.count(), 5);
    let (went_on, resumed) = (saved.keys.next(), loaded.keys.next());
    assert_eq!(went_on, resumed);
    assert!(!first.contains(&resumed));
    // The two are apart from here on.
    saved.keys.next();
    assert_eq!(loaded.keys.count(), 6);
}

/// Neither copies nor threads nor a module's ways through an optimiser give a key twice.
#[test]
fn no_key_is_given_out_twice() {
    let model = model(4);
    let copy = model
        .clone()
        .no_grad()
        .to_device(&Device::flex().autodiff());
    let draw = |keys: &KeyStream| (0..200).map(|_| keys.next()).collect::<Vec<_>>();
    let drawn = std::thread::scope(|scope| {
        let other = scope.spawn(|| draw(&copy.keys));
        let mut drawn = draw(&model.keys);
        drawn.extend(other.join().expect("no panic"));
        drawn
    });
    let different: HashSet<Key> = drawn.iter().copied().collect();
    assert_eq!(different.len(), 400);
    assert_eq!(model.keys.count(), 400);
}

/// An evaluation has keys of its own, the same each time, and leaves those of training alone.
#[test]
fn evaluations_have_their_own_keys() {
    let model = model(5);
    let first = model.valid().keys.next();
    model.keys.next();
    assert_eq!(model.valid().keys.next(), first);
    assert_eq!(model.keys.count(), 1);
    assert_eq!(model.keys.next(), Key::new(5).child(1));
    let training: Vec<Key> = (0..1000).map(|_| model.keys.next()).collect();
    assert!(!training.contains(&first));
    assert!(model.to_string().contains("1002"), "{model}");
}
