//! Invalid settings, and runs that fail.

use std::fs;

use crate::common::{Place, errors, failed, names, refused, run, snapshot, text};
use crate::{SMALL, epochs, small_in};

#[test]
fn bad_settings_exit_with_two_and_write_nothing() {
    let place = Place::new();
    let (out, empty) = (place.at("out"), place.at("empty"));
    fs::create_dir(&empty).expect("a directory");
    let missing = place.at("missing");
    let rate = "the learning rate must be a positive number, got ";
    for (flags, hint) in [
        (
            &["--estimator", "straight-thru"][..],
            "there is no estimator `straight-thru`; did you mean straight-through",
        ),
        (
            &["--estimator", "arm:sampels=3"],
            "`arm` has no option `sampels`; did you mean samples?",
        ),
        (&["--estimator", "reinforce:baseline=nonsense"], "nonsense"),
        (
            &["--latent", "poisson", "--estimator", "arm"],
            "`arm` does not support poisson variables; it supports bernoulli",
        ),
        (
            &["--protocol", "dynamic"],
            "the dynamic protocol needs greyscale images, but these are binary",
        ),
        (&["--data", text(&missing)], "missing cannot be read"),
        (&["--data", text(&empty)], "empty holds no image set"),
        (
            &["--epochs", "0"],
            "the number of epochs must be at least 1",
        ),
        (
            &["--device", "cuda"],
            "this program was built without `cuda`: rebuild it with --features cuda",
        ),
        (
            &["--images", "0"],
            "the number of images must be at least 1, got 0",
        ),
        (&["--validation", "most"], "most"),
        (
            &["--state-learning-rate", "0"],
            "the learning rate of the estimator's state must be a positive number, got 0",
        ),
        (
            &["--slope", "nan"],
            "the slope of the rectifiers must be a finite number",
        ),
        (&["--batch", "0"], "the batch size must be at least 1"),
        (
            &["--bound-samples", "0"],
            "the number of the bound's samples must be 1 to 10000",
        ),
        (&["--samples", "0"], "at least 1"),
        (
            &["--samples", "2", "--estimator", "arm:samples=3"],
            "the number of samples was given twice: as --samples and in `arm:samples=3`",
        ),
        (&["--learning-rate", "0"], rate),
        (&["--learning-rate", "-1"], rate),
        (&["--learning-rate", "inf"], rate),
        (&["--learning-rate", "nan"], rate),
        (
            &["--config", "no-such-file.toml"],
            "no-such-file.toml cannot be read",
        ),
    ] {
        let arguments = [&["vae", "--out", text(&out)], flags].concat();
        refused(&arguments, hint, place.root.path());
        assert!(!out.exists(), "{flags:?} made a directory");
    }
}

#[test]
fn words_that_are_no_options_are_refused_with_a_hint() {
    for (flags, hint) in [
        (&["--arch", "liner"][..], "'linear'"),
        (&["--latent", "gauss"], "poisson"),
        (&["--epochs", "many"], "--epochs"),
        (&["--estimator", "a b:="], "write `id` or `id:key=value"),
        (
            &["--config", "a.toml", "--resume", "--out", "a"],
            "cannot be used with",
        ),
        (
            &["--epochs", "-1"],
            "invalid value '-1' for '--epochs <N>': expected a whole number of at least 1",
        ),
        (&["--prior-learning-rate", "x"], "--prior-learning-rate"),
        (&["--prior", "lerned"], "'learned'"),
    ] {
        let output = run(&[&["vae"], flags].concat());
        let message = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {message}");
        assert!(message.contains(hint), "{flags:?}: {message}");
    }
}

#[test]
fn estimators_with_options_state_and_bounds_of_their_own_run() {
    for estimator in [
        "reinforce:baseline=none",
        "reinforce:baseline=moving-average",
        "reinforce:baseline=learned",
        "reinforce:baseline=loo,samples=2",
        "vimco",
    ] {
        let settings = ["--epochs", "1", "--estimator", estimator, "--json"];
        let output = run(&[SMALL, &settings].concat());
        assert!(output.status.success(), "{estimator}: {}", errors(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["rows"][0]["estimator"], estimator);
    }
}

#[test]
fn bits_that_are_too_many_to_be_enumerated_are_said_to_be() {
    let place = Place::new();
    let out = place.at("out");
    let arguments = ["--estimator", "enumerate", "--out", text(&out)];
    let arguments = [SMALL, &arguments].concat();
    let hint = "enumeration would visit 1.607e60 states";
    refused(&arguments, hint, place.root.path());
    assert!(!out.exists(), "it made a directory");
}

#[test]
fn a_run_that_diverges_at_once_leaves_no_checkpoint() {
    let place = Place::new();
    let directory = place.at("run");
    let settings = ["--epochs", "2", "--learning-rate", "1e38"];
    let sentence = failed(&run(&small_in(&settings, &directory)));
    let expected = "training failed in epoch 1, step 2";
    assert!(sentence.contains(expected), "{sentence}");
    assert!(sentence.contains("must be finite"), "{sentence}");
    assert_eq!(names(&directory), ["config.toml", "metrics.jsonl"]);
    assert!(epochs(&directory).is_empty(), "an epoch was recorded");
}

/// One step in each epoch, so that the first one is good.
#[test]
fn a_run_that_diverges_later_leaves_its_last_good_checkpoint() {
    let place = Place::new();
    for (estimator, words) in [
        ("exponential-arrival", "training failed in epoch 2, step 2"),
        (
            "pwgf",
            "is not finite in epoch 2, after step 2: lower the learning rate",
        ),
    ] {
        let directory = place.at(estimator);
        let arguments = [
            "vae",
            "--latent",
            "poisson",
            "--estimator",
            estimator,
            "--images",
            "25",
            "--epochs",
            "20",
            "--learning-rate",
            "0.1",
            "--out",
            text(&directory),
        ];
        let sentence = failed(&run(&arguments));
        assert!(sentence.contains(words), "{estimator}: {sentence}");
        let files = ["checkpoint.bin", "config.toml", "metrics.jsonl"];
        assert_eq!(names(&directory), files, "{estimator}");
        for epoch in epochs(&directory) {
            assert_eq!(epoch["epoch"], 1, "{estimator}: {epoch}");
            for field in ["objective", "train_part_nelbo", "valid_nelbo", "test_nelbo"] {
                assert!(epoch[field].is_f64(), "{estimator}, {field}: {epoch}");
            }
        }
        // From the checkpoint it comes to the same end, so that its parameters are good.
        let before = snapshot(&directory);
        assert_eq!(failed(&run(&arguments)), sentence, "{estimator}");
        assert!(
            snapshot(&directory) == before,
            "{estimator}: a file changed"
        );
    }
}
