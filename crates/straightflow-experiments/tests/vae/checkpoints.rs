//! Where a run may resume, and where it must not.

use burn::module::Module;
use straightflow_data::sha256;
use straightflow_experiments::vae::{Architecture, Config, Trainer, VaeError, run};

use crate::training::{Witness, data, small};

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

/// A checkpoint with another head and a checksum that fits.
fn with_head(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    // After the magic line: the length of the name, "head", the length of the head, the head.
    let start = bytes.iter().position(|b| *b == b'\n').expect("a line") + 1;
    let head = start + 4 + "head".len() + 8;
    let length = bytes[head - 8..head].try_into().expect("eight bytes");
    let end = head + u64::from_le_bytes(length) as usize;
    let text = std::str::from_utf8(&bytes[head..end]).expect("JSON");
    assert!(text.contains(from), "{from}: {text}");
    let text = text.replace(from, to);
    let mut changed = bytes[..head - 8].to_vec();
    changed.extend_from_slice(&(text.len() as u64).to_le_bytes());
    changed.extend_from_slice(text.as_bytes());
    changed.extend_from_slice(&bytes[end..bytes.len() - 64]);
    let digest = sha256(&changed);
    changed.extend_from_slice(digest.as_bytes());
    changed
}

/// Its checksum fits, and it is no place of this run: without a look, the next step would panic.
#[test]
fn a_checkpoint_at_a_place_that_cannot_be_is_refused() {
    let data = data();
    let config = small(Architecture::Linear, "arm", &data);
    let mut witness = Witness::default();
    run(&config, &data, None, &mut witness).expect("a run");
    let good = &witness.checkpoints[1];
    for (from, to, hint) in [
        ("\"batch\":0,", "\"batch\":3,", "is 3 batches into an epoch"),
        (
            "\"batch\":0,",
            "\"batch\":99,",
            "is 99 batches into an epoch",
        ),
        ("\"batch\":0,", "\"batch\":1,", "counts 6 steps"),
        ("\"steps\":6", "\"steps\":7", "counts 7 steps"),
        (
            "\"epoch\":2,\"batch\":0,\"steps\":6",
            "\"epoch\":3,\"batch\":0,\"steps\":9",
            "has 3 epochs and the measurements of 2",
        ),
        (
            "\"epoch\":2,\"batch\":0,\"steps\":6",
            "\"epoch\":4,\"batch\":2,\"steps\":14",
            "has begun 5 epochs, and the run has 4",
        ),
    ] {
        let bad = with_head(good, from, to);
        match run(&config, &data, Some(bad), &mut Witness::default()) {
            Err(VaeError::Checkpoint { because }) => {
                assert!(because.contains(hint), "{to}: {because}");
            }
            Err(other) => panic!("{to}: another error: {other}"),
            Ok(_) => panic!("{to}: it was taken"),
        }
    }
    let same = with_head(good, "\"steps\":6", "\"steps\":6");
    run(&config, &data, Some(same), &mut Witness::default()).expect("the good one");
}
