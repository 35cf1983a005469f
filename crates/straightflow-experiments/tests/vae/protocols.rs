//! Protocols of the field: their settings, the deep model, bounds on the way, and the choice of a model.

use burn::tensor::{Device, Tensor};
use straightflow::Key;
use straightflow_data::{Dataset, GreyImages, Images};
use straightflow_experiments::vae::{
    Architecture, Centring, Config, Epoch, Latent, Layout, Prior, Protocol, Settings, Source,
    StepBound, Summary, Trainer, Vae, run,
};

use super::training::{Witness, data, small};

/// Grey images to draw pixels from, few of them.
fn grey() -> Source {
    let pixels: Vec<u8> = (0..784 * 90u32).map(|i| (i * 37 % 251) as u8).collect();
    let images = GreyImages::new(28, 28, pixels);
    Source::new(Dataset::new("grey", Images::Grey(images), 60))
}

fn preset(protocol: Protocol, arch: Architecture) -> Config {
    let settings = Settings {
        protocol,
        partition: Some("last-10".to_owned()),
        ..Settings::new(arch, "disarm".parse().expect("a specification"))
    };
    settings.config(&grey()).expect("valid settings")
}

#[test]
fn protocol_e_centres_nothing() {
    let config = preset(Protocol::Uncentred, Architecture::Nonlinear);
    assert_eq!((config.batch, config.learning_rate), (100, 1e-3));
    assert_eq!(config.prior, Prior::Fixed);
    assert_eq!(
        (config.inputs, config.latent_inputs),
        (Centring::None, Centring::None)
    );
    assert!(!config.output_bias);
    assert_eq!(config.slope, 0.3);
    // A million steps with 50,000 images.
    assert_eq!(config.epochs * 50_000 / 100, 1_000_000);
}

#[test]
fn protocol_d_looks_at_a_bound_every_thousand_steps() {
    let config = preset(Protocol::Dynamic, Architecture::FourLayer);
    assert_eq!((config.bound_every, config.bound_samples), (1000, 100));
    assert_eq!((config.batch, config.learning_rate), (50, 1e-4));
    assert_eq!(config.arch.layers(), 4);
    assert_eq!(
        preset(Protocol::Uncentred, Architecture::Linear).bound_every,
        0
    );
}

/// A number of latent variables other than the usual one is part of the record and of the model; the usual
/// one is not mentioned, as in records from before there was a choice.
#[test]
fn layers_have_as_many_variables_as_asked_for() {
    let with = |latent: Latent, units: usize| Settings {
        latent,
        units: Some(units),
        partition: Some("last-10".to_owned()),
        protocol: Protocol::Dynamic,
        ..Settings::new(
            Architecture::Nonlinear,
            "straight-through".parse().expect("a specification"),
        )
    };
    let config = |latent, units| with(latent, units).config(&grey());
    let counts = config(Latent::Poisson, 7).expect("valid settings");
    assert_eq!(counts.dims(), [7, 1]);
    assert_eq!(counts.settings().units, Some(7));
    let model = Vae::new(Layout::new(&counts), 784, Key::new(1), &Device::flex());
    assert_eq!(model.prior.val().dims(), [7, 1]);
    let rows = Tensor::zeros([1, 3, 7, 1], &Device::flex());
    assert_eq!(model.pixels(rows).dims(), [3, 784]);

    let usual = config(Latent::Categorical, 20).expect("valid settings");
    assert_eq!((usual.units, usual.dims()), (None, [20, 10]));
    assert!(!toml::to_string(&usual).expect("a record").contains("units"));
    let error = config(Latent::Bernoulli, 0).expect_err("no variables");
    assert_eq!(
        error.to_string(),
        "the number of latent variables must be at least 1, got 0"
    );
}

/// What a model sees of the first two training images in the first two epochs.
fn shown(protocol: Protocol) -> [Vec<f32>; 2] {
    let (config, data) = (preset(protocol, Architecture::Linear), grey());
    let trainer = Trainer::new(&config, &data).expect("valid settings");
    [0, 1].map(|epoch| {
        let images = trainer.training_images(epoch, &[0, 1]);
        images.to_data().try_to_vec().expect("single precision")
    })
}

#[test]
fn protocols_d_and_e_draw_pixels_anew_in_every_epoch() {
    for protocol in [Protocol::Dynamic, Protocol::Uncentred] {
        let [first, second] = shown(protocol);
        assert!(first.iter().all(|x| *x == 0.0 || *x == 1.0));
        assert_ne!(first, second, "{}", protocol.name());
    }
    let [first, second] = shown(Protocol::Static);
    assert_eq!(first, second);
}

#[test]
fn the_greyscale_protocol_is_that_of_thresholds_with_grey_pixels() {
    let [first, second] = shown(Protocol::Greyscale);
    let pixels = (0..784 * 2u32).map(|i| (i * 37 % 251) as f32 / 255.0);
    assert_eq!(first, pixels.collect::<Vec<_>>());
    assert_eq!(first, second);
    let [grey, binary] = [Protocol::Greyscale, Protocol::Threshold]
        .map(|protocol| preset(protocol, Architecture::Linear));
    let as_binary = Config {
        protocol: Protocol::Threshold,
        ..grey
    };
    assert_eq!(as_binary, binary);
    assert!(Protocol::Greyscale.load(None).is_err());
}

/// Records of before know nothing of bounds on the way, and without them nothing is recorded of it.
#[test]
fn configurations_without_bounds_on_the_way_are_as_they_were() {
    let data = data();
    let config = small(Architecture::Linear, "straight-through", &data);
    let text = serde_json::to_string(&config).expect("plain values");
    assert!(!text.contains("bound-every"), "{text}");
    assert_eq!(
        serde_json::from_str::<Config>(&text).expect("valid"),
        config
    );
}

/// Four layers of bits are trained by a pathwise method, one layer after the other, and by a bound.
#[test]
fn four_layers_learn() {
    let data = data();
    for spec in ["straight-through", "disarm", "local-disarm"] {
        let config = Config {
            epochs: 6,
            learning_rate: 3e-3,
            ..small(Architecture::FourLayer, spec, &data)
        };
        let mut witness = Witness::default();
        let finished = run(&config, &data, None, &mut witness).expect(spec);
        let curve = &finished.summary.curve;
        let (first, last) = (&curve[0], &curve[5]);
        assert!(
            last.train_part_nelbo < first.train_part_nelbo - 10.0,
            "{spec}: {curve:?}"
        );
    }
}

/// Bounds come after the asked-for steps, and an interruption does not change them.
#[test]
fn bounds_on_the_way_survive_an_interruption() {
    let data = data();
    // Three steps an epoch, four epochs.
    let config = Config {
        bound_every: 5,
        ..small(Architecture::Linear, "straight-through", &data)
    };
    let mut witness = Witness::default();
    let whole = run(&config, &data, None, &mut witness).expect("valid");
    let steps: Vec<u64> = whole.summary.bounds.iter().map(|one| one.step).collect();
    assert_eq!(steps, [5, 10]);
    assert!(
        whole
            .summary
            .bounds
            .iter()
            .all(|one| one.test_bound.is_finite())
    );
    // After the second epoch, six steps.
    let checkpoint = witness.checkpoints[1].clone();
    let resumed = run(&config, &data, Some(checkpoint), &mut Witness::default());
    assert_eq!(resumed.expect("valid").summary, whole.summary);
    let without = Config {
        bound_every: 0,
        ..config
    };
    let without = run(&without, &data, None, &mut Witness::default()).expect("valid");
    assert_eq!(without.summary.curve, whole.summary.curve);
    assert_eq!(without.summary.bounds, Vec::<StepBound>::new());
}

#[test]
fn a_model_is_chosen_by_its_validation_value() {
    let epoch = |epoch: u64, valid_nelbo: f64, test_nelbo: f64| Epoch {
        epoch,
        step: epoch,
        evaluations: epoch,
        gradients: epoch,
        objective: 0.0,
        train_part_nelbo: 0.0,
        valid_nelbo,
        test_nelbo,
        gradient_variance: None,
    };
    let curve = vec![
        epoch(1, 120.0, 119.0),
        epoch(2, 110.0, 112.0),
        epoch(3, 111.0, 109.0),
    ];
    let summary = Summary {
        rows: Vec::new(),
        train_nelbo: 0.0,
        valid_nelbo: 111.0,
        test_nelbo: 109.0,
        test_bound_100: 100.0,
        bound_samples: 100,
        curve,
        bounds: Vec::new(),
    };
    // Neither the last epoch nor the best test value.
    let best = summary.selected().expect("three epochs");
    assert_eq!((best.epoch, best.test_nelbo), (2, 112.0));
}
