//! Training, protocols, settings.

use burn::tensor::Tensor;
use straightflow_data::{Dataset, GreyImages, Images, Partition};
use straightflow_experiments::vae::{
    Architecture, Centring, Config, Direct, Epoch, Latent, Prior, Protocol, Settings, Source,
    Trainer, VaeError, Watcher, run,
};

pub fn data() -> Source {
    Protocol::Threshold.load(None).expect("embedded data")
}

pub fn small(arch: Architecture, spec: &str, data: &Source) -> Config {
    let spec = spec.parse().expect("a specification");
    let settings = Settings {
        images: Some(60),
        batch: Some(20),
        epochs: Some(4),
        bound_samples: 5,
        learning_rate: Some(1e-3),
        ..Settings::new(arch, spec)
    };
    settings.config(data).expect("valid settings")
}

/// Keeps everything that it is told.
#[derive(Default)]
pub struct Witness {
    pub epochs: Vec<Epoch>,
    pub checkpoints: Vec<Vec<u8>>,
}

impl Watcher for Witness {
    type Error = VaeError;

    fn progress(&mut self, share: f64) -> Result<(), VaeError> {
        assert!((0.0..=1.0).contains(&share), "{share}");
        Ok(())
    }

    fn epoch(&mut self, epoch: &Epoch) -> Result<(), VaeError> {
        self.epochs.push(epoch.clone());
        Ok(())
    }

    fn checkpoint(&mut self, bytes: Vec<u8>) -> Result<(), VaeError> {
        self.checkpoints.push(bytes);
        Ok(())
    }
}

#[test]
fn a_configuration_is_what_its_settings_lead_to() {
    let data = data();
    let spec = || "rebar".parse().expect("a specification");
    for arch in Architecture::ALL {
        for latent in [Latent::Bernoulli, Latent::Categorical] {
            for protocol in [Protocol::Threshold, Protocol::Static] {
                let plain = Settings {
                    latent,
                    protocol,
                    ..Settings::new(arch, spec())
                };
                let config = plain.clone().config(&data).expect("valid settings");
                assert_eq!(config.settings(), plain);
                let all = Settings {
                    direct: Some(Direct::Kept),
                    epochs: Some(3),
                    batch: Some(7),
                    learning_rate: Some(3e-4),
                    state_learning_rate: Some(0.1),
                    prior_learning_rate: Some(0.2),
                    output_bias: Some(true),
                    slope: Some(0.7),
                    inputs: Some(Centring::Mean),
                    partition: Some("last-77".to_owned()),
                    images: Some(9),
                    ..plain
                };
                let config = all.clone().config(&data).expect("valid settings");
                assert_eq!(config.settings(), all);
                assert_eq!(config.settings().config(&data).expect("valid"), config);
            }
        }
    }
}

#[test]
fn a_cost_that_is_not_finite_ends_the_run_and_names_the_epoch() {
    let data = data();
    let config = Config {
        learning_rate: 1e38,
        ..small(Architecture::Linear, "straight-through", &data)
    };
    let mut witness = Witness::default();
    let Err(error) = run(&config, &data, None, &mut witness) else {
        panic!("it does not diverge");
    };
    assert!(!error.is_bad_input());
    let text = error.to_string();
    assert!(text.contains("epoch 1"), "{text}");
    assert!(witness.checkpoints.is_empty());
}

#[test]
fn training_lowers_the_cost_whatever_the_variables() {
    let data = data();
    let cases = [
        (Latent::Bernoulli, "straight-through"),
        (Latent::Categorical, "gumbel-rao"),
        (Latent::Poisson, "pwgf"),
        (Latent::Poisson, "exponential-arrival"),
    ];
    for (latent, spec) in cases {
        let spec = spec.parse().expect("a specification");
        let settings = Settings {
            latent,
            images: Some(300),
            epochs: Some(6),
            learning_rate: Some(1e-3),
            bound_samples: 20,
            ..Settings::new(Architecture::Nonlinear, spec)
        };
        let config = settings.config(&data).expect("valid settings");
        let mut witness = Witness::default();
        let summary = run(&config, &data, None, &mut witness)
            .expect("a run")
            .summary;
        let first = witness.epochs[0].test_nelbo;
        assert!(
            summary.test_nelbo < first - 20.0,
            "{spec:?}: {first} to {}",
            summary.test_nelbo,
            spec = config.estimator
        );
        assert!(
            summary.test_bound_100 < summary.test_nelbo,
            "{}",
            config.estimator
        );
    }
}

#[test]
fn protocols_are_what_the_literature_has() {
    let data = data();
    let config = |protocol, arch| {
        let spec = "arm".parse().expect("a specification");
        let settings = Settings {
            protocol,
            ..Settings::new(arch, spec)
        };
        settings.config(&data).expect("valid settings")
    };
    use Architecture::{Linear, Nonlinear, TwoLayer};
    let a = config(Protocol::Threshold, Nonlinear);
    assert_eq!((a.batch, a.epochs, a.slope), (25, 400, 0.2));
    assert_eq!((a.prior, a.direct), (Prior::Fixed, Direct::Dropped));
    assert_eq!(a.partition().expect("a partition"), Partition::TRAIN_55K);
    assert_eq!(config(Protocol::Threshold, TwoLayer).epochs, 1500);
    let b = config(Protocol::Static, Linear);
    assert_eq!((b.batch, b.epochs, b.prior), (50, 1200, Prior::Learned));
    assert_eq!(b.partition().expect("a partition"), Partition::TRAIN_50K);
    let b = config(Protocol::Static, Nonlinear);
    assert_eq!((b.batch, b.slope, b.prior), (20, 0.1, Prior::Fixed));
    let d = config(Protocol::Dynamic, Nonlinear);
    assert_eq!((d.batch, d.slope, d.output_bias), (50, 0.3, true));
}

#[test]
fn only_a_learned_prior_moves() {
    let data = data();
    let moved = |prior| {
        let config = Config {
            prior,
            ..small(Architecture::Linear, "straight-through", &data)
        };
        let mut trainer = Trainer::new(&config, &data).expect("a trainer");
        for _ in 0..3 {
            trainer.step().expect("a step");
        }
        let prior: Tensor<2> = trainer.model().prior.val().inner();
        prior.abs().sum().into_scalar::<f32>() > 0.0
    };
    assert!(moved(Prior::Learned));
    assert!(!moved(Prior::Fixed));
}

/// Grey images of two by two pixels, the last hundred of them for tests.
fn grey(count: usize) -> Source {
    let images = GreyImages::new(2, 2, vec![128; 4 * count]);
    Source::new(Dataset::new("grey", Images::Grey(images), 100))
}

#[test]
fn dynamic_pixels_are_drawn_anew() {
    let spec = "straight-through".parse().expect("a specification");
    let settings = Settings {
        protocol: Protocol::Dynamic,
        images: Some(10),
        ..Settings::new(Architecture::Linear, spec)
    };
    // The protocol validates on ten thousand images.
    let few = settings.clone().config(&grey(500));
    assert!(matches!(few, Err(VaeError::Data(_))), "{few:?}");
    let data = grey(10_500);
    let config = settings.config(&data).expect("valid settings");
    let trainer = Trainer::new(&config, &data).expect("a trainer");
    let pixels = |epoch| {
        let x = trainer.training_images(epoch, &[0, 1, 2, 3, 4, 5, 6, 7]);
        x.into_data().try_to_vec::<f32>().expect("f32")
    };
    assert_eq!(pixels(0), pixels(0));
    assert_ne!(pixels(0), pixels(1));
}
