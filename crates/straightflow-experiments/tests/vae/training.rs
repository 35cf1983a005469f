//! Training, checkpoints, protocols.

use burn::module::Module;
use burn::tensor::Tensor;
use straightflow_data::{Dataset, GreyImages, Images, Partition};
use straightflow_experiments::vae::{
    Architecture, Config, Direct, Epoch, Latent, Prior, Protocol, Settings, Source, Trainer,
    VaeError, Watcher, run,
};

fn data() -> Source {
    Protocol::Threshold.load(None).expect("embedded data")
}

fn small(arch: Architecture, spec: &str, data: &Source) -> Config {
    let spec = spec.parse().expect("a specification");
    let settings = Settings {
        images: 60,
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
struct Witness {
    epochs: Vec<Epoch>,
    checkpoints: Vec<Vec<u8>>,
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
fn a_run_that_goes_on_from_any_checkpoint_ends_the_same() {
    let data = data();
    let cases = [
        (Architecture::Linear, "straight-through"),
        (Architecture::TwoLayer, "arm"),
        (Architecture::Nonlinear, "reinforce:baseline=moving-average"),
        (Architecture::Linear, "rebar"),
        (Architecture::TwoLayer, "relax:control=sum"),
        (
            Architecture::Linear,
            "gumbel-softmax:temperature=1>0.1@0.01",
        ),
    ];
    for (arch, spec) in cases {
        let config = small(arch, spec, &data);
        let mut whole = Witness::default();
        let expected = run(&config, &data, None, &mut whole).expect("a run");
        assert_eq!(whole.checkpoints.len(), 4);
        assert_eq!(expected.summary.curve, whole.epochs);
        for from in [0, 2, 3] {
            let mut rest = Witness::default();
            let checkpoint = Some(whole.checkpoints[from].clone());
            let finished = run(&config, &data, checkpoint, &mut rest).expect("a run");
            assert!(finished == expected, "{spec} from checkpoint {from}");
            assert!(rest.epochs == whole.epochs, "{spec}");
        }
    }
}

#[test]
fn a_checkpoint_in_the_middle_of_an_epoch_is_as_good() {
    let data = data();
    let config = small(Architecture::Linear, "rebar", &data);
    let mut whole = Trainer::new(&config, &data).expect("a trainer");
    for _ in 0..2 {
        whole.step().expect("a step");
    }
    assert!(!whole.at_epoch());
    let bytes = whole.checkpoint().expect("a checkpoint");
    let mut rest = Trainer::resume(&config, &data, &bytes).expect("a trainer");
    for _ in 0..5 {
        whole.step().expect("a step");
        rest.step().expect("a step");
    }
    let last = |trainer: &Trainer| {
        let layer = trainer.model().decoder[0].clone().into_record();
        layer.into_bytes().expect("bytes").to_vec()
    };
    assert!(last(&whole) == last(&rest));
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let data = data();
    let config = small(Architecture::Linear, "arm", &data);
    let mut trainer = Trainer::new(&config, &data).expect("a trainer");
    trainer.step().expect("a step");
    let good = trainer.checkpoint().expect("bytes");
    let refused = |bytes: &[u8], config: &Config| match Trainer::resume(config, &data, bytes) {
        Err(VaeError::Checkpoint { because }) => because,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was taken"),
    };
    for cut in [0, 5, 40, good.len() / 2, good.len() - 1] {
        refused(&good[..cut], &config);
    }
    for place in [30, good.len() / 3, good.len() - 70, good.len() - 1] {
        let mut bad = good.clone();
        bad[place] ^= 4;
        assert!(refused(&bad, &config).contains("damaged"), "byte {place}");
    }
    let mut bad = good.clone();
    bad[0] ^= 1;
    assert!(refused(&bad, &config).contains("not one"));
    let other = Config {
        seed: 2,
        ..config.clone()
    };
    assert!(refused(&good, &other).contains("another configuration"));
    Trainer::resume(&config, &data, &good).expect("the good one");
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
            images: 300,
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
        images: 10,
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
