//! Mistakes that leave a training that looks like one: each test fails for one of them.

use burn::module::{ModuleMapper, ModuleVisitor, Param};
use straightflow_data::{Dataset, GreyImages, Images as Pixels, Split};

use super::super::config::{Architecture, Settings};
use super::super::protocol::Protocol;
use super::*;

/// A learning rate that changes no number of a training in single precision.
const NO_STEP: f64 = 1e-30;

/// Images of two by two grey pixels: so many to train and validate on, and as many for tests.
fn images(count: usize, pixel: impl Fn(usize) -> u8) -> Source {
    let bytes: Vec<u8> = (0..4 * 2 * count).map(pixel).collect();
    let images = Pixels::Grey(GreyImages::new(2, 2, bytes));
    Source::new(Dataset::new("made-up", images, count))
}

/// The same white image again and again.
fn equal_images() -> Source {
    let data = images(50, |_| 255);
    Source::new((*data).clone().threshold(127))
}

/// Settings for those images: ten of them validate.
fn settings(spec: &str) -> Settings {
    let spec = spec.parse().expect("a specification");
    Settings {
        batch: Some(10),
        learning_rate: Some(NO_STEP),
        partition: Some("first-10".to_owned()),
        ..Settings::new(Architecture::Linear, spec)
    }
}

/// The mean costs of the first steps.
fn costs(settings: Settings, data: &Source, steps: usize) -> Vec<f64> {
    let config = settings.config(data).expect("valid settings");
    let mut trainer = Trainer::new(&config, data).expect("a trainer");
    let mut step = || {
        let (cost, images) = (trainer.place.cost, trainer.place.images);
        trainer.step().expect("a step");
        (trainer.place.cost - cost) / (trainer.place.images - images) as f64
    };
    (0..steps).map(|_| step()).collect()
}

/// All parameters of a module, in their order.
fn numbers<M: Module>(module: &M) -> Vec<f32> {
    struct Gather(Vec<f32>);
    impl ModuleVisitor for Gather {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let data = param.val().inner().into_data();
            self.0
                .extend_from_slice(data.as_slice::<f32>().expect("f32"));
        }
    }
    let mut gather = Gather(Vec::new());
    module.visit(&mut gather);
    gather.0
}

/// Not for each epoch, and not for each place in an epoch.
#[test]
fn noise_is_new_in_every_step() {
    let data = equal_images();
    // Two epochs of four steps on the same image with the same parameters: only the noise differs.
    let costs = costs(settings("straight-through"), &data, 8);
    for (i, cost) in costs.iter().enumerate() {
        assert!(!costs[..i].contains(cost), "step {i}: {costs:?}");
    }
}

#[test]
fn a_schedule_of_temperatures_follows_the_steps() {
    let data = equal_images();
    let of = |temperature: &str| {
        let spec = format!("gumbel-softmax:temperature={temperature}");
        costs(settings(&spec), &data, 3)
    };
    // At its floor after one step.
    let (falling, warm, cold) = (of("1>0.1@10"), of("1"), of("0.1"));
    assert_eq!(falling[0], warm[0]);
    assert_eq!(falling[1..], cold[1..]);
    for step in 0..3 {
        assert_ne!(warm[step], cold[step]);
    }
}

#[test]
fn what_an_estimator_learns_has_its_own_learning_rate() {
    let data = equal_images();
    // Which of the model and the state moves, if the rates are these.
    let moved = |learning_rate, state_learning_rate| {
        let settings = Settings {
            learning_rate: Some(learning_rate),
            state_learning_rate: Some(state_learning_rate),
            ..settings("reinforce:baseline=learned")
        };
        let config = settings.config(&data).expect("valid settings");
        let mut trainer = Trainer::new(&config, &data).expect("a trainer");
        let look = |trainer: &Trainer| {
            let state = trainer.state.as_ref().expect("it learns");
            (numbers(&trainer.model), numbers(state))
        };
        let before = look(&trainer);
        trainer.step().expect("a step");
        let after = look(&trainer);
        let differ = |before: &[f32], after: &[f32]| {
            let mut pairs = before.iter().zip(after);
            pairs.any(|(before, after)| (before - after).abs() > 1e-20)
        };
        (differ(&before.0, &after.0), differ(&before.1, &after.1))
    };
    assert_eq!(moved(0.01, NO_STEP), (true, false));
    assert_eq!(moved(NO_STEP, 0.01), (false, true));
}

/// The last batch of an epoch is smaller, so its mean counts less.
#[test]
fn the_objective_of_an_epoch_is_a_mean_over_images() {
    let data = images(26, |byte| (37 * byte % 256) as u8);
    let data = Source::new((*data).clone().threshold(127));
    let config = settings("straight-through").config(&data);
    let config = config.expect("valid settings");
    let mut by_hand = Trainer::new(&config, &data).expect("a trainer");
    let (mut sum, mut sizes) = (0.0, Vec::new());
    for _ in 0..2 {
        let batch = by_hand.next_batch();
        let size = batch.x.dims()[0];
        let (cost, _) = by_hand.learn(batch).expect("a step");
        sum += cost * size as f64;
        sizes.push(size);
        by_hand.place.steps += 1;
        by_hand.place.batch += 1;
    }
    assert_eq!(sizes, [10, 6]);

    let mut trainer = Trainer::new(&config, &data).expect("a trainer");
    for _ in 0..2 {
        trainer.step().expect("a step");
    }
    let objective = trainer.measure().expect("numbers").objective;
    assert!((objective - sum / 16.0).abs() < 1e-9, "{objective}");
}

/// Weights of zero: what is left of the cost depends on the pixels alone.
fn without_weights(trainer: &mut Trainer) {
    struct Zero;
    impl ModuleMapper for Zero {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            match D {
                2 => param.map(|x| Tensor::zeros(x.dims(), &x.device())),
                _ => param,
            }
        }
    }
    trainer.model = trainer.model.take().map(&mut Zero);
}

/// Greyscale images become binary once for all evaluations, whatever the seed and the epoch.
#[test]
fn evaluations_are_always_of_the_same_pixels() {
    let data = images(60, |byte| [40, 90, 160, 220][byte % 4]);
    let bounds = |seed, epoch| {
        let settings = Settings {
            protocol: Protocol::Dynamic,
            prior: Some(super::super::protocol::Prior::Fixed),
            seed,
            ..settings("straight-through")
        };
        let config = settings.config(&data).expect("valid settings");
        let mut trainer = Trainer::new(&config, &data).expect("a trainer");
        without_weights(&mut trainer);
        trainer.place.epoch = epoch;
        Split::ALL.map(|split| trainer.bound(split, 1, usize::MAX).expect("a number"))
    };
    let expected = bounds(1, 0);
    assert_eq!(bounds(1, 3), expected);
    assert_eq!(bounds(2, 0), expected);
}

/// An evaluation goes through the images in pieces; the same noise for all would make their errors add up.
#[test]
fn the_pieces_of_an_evaluation_have_their_own_noise() {
    let data = equal_images();
    let config = settings("straight-through").config(&data);
    let config = config.expect("valid settings");
    let trainer = Trainer::new(&config, &data).expect("a trainer");
    // So many draws that each image is a piece.
    let bound = |images| trainer.bound(Split::Test, 2000, images).expect("a number");
    let (one, two) = (bound(1), bound(2));
    assert_ne!(one, two, "two equal images with equal noise");
}

#[test]
fn biases_of_the_pixels_are_from_training_images() {
    // Images 0 to 9 validate, 10 to 49 train, 50 to 99 are for tests.
    let data = images(50, |byte| match byte / 4 {
        0..10 => 10,
        10..50 => 200,
        _ => 90,
    });
    let settings = Settings {
        protocol: Protocol::Dynamic,
        ..settings("straight-through")
    };
    let config = settings.config(&data).expect("valid settings");
    let trainer = Trainer::new(&config, &data).expect("a trainer");
    let parameters = numbers(&trainer.model.decoder[0]);
    let logit = (200.0f32 / 55.0).ln();
    for bias in &parameters[parameters.len() - 4..] {
        assert!((bias - logit).abs() < 1e-5, "{bias}, not {logit}");
    }
    // The encoder sees the difference from the same means.
    let input = trainer.images.evaluation(&[10]);
    let shift = (input.x - input.input.tensor()).into_data();
    for mean in shift.as_slice::<f32>().expect("f32") {
        assert!((mean - 200.0 / 255.0).abs() < 1e-6, "{mean}");
    }
}

#[test]
fn an_epoch_of_many_images_has_each_of_them_once() {
    let data = images(5000, |_| 255);
    let data = Source::new((*data).clone().threshold(127));
    let config = settings("straight-through").config(&data);
    let config = config.expect("valid settings");
    let trainer = Trainer::new(&config, &data).expect("a trainer");
    for epoch in 0..3 {
        let order = trainer.batches.epoch(epoch);
        let mut seen: Vec<usize> = order.batches_from(0).flatten().copied().collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(10..5000), "epoch {epoch}");
    }
}
