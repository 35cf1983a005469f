//! Specifications, over the whole registry.

use std::path::Path;

use straightflow::Error;
use straightflow::estimator::{KINDS, Layers, Need, REGISTRY, Spec, display_option, find};

/// Every file of the folder but `mod.rs` is a method of the registry, and the other way round.
#[test]
fn the_folder_is_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/method");
    let paths = std::fs::read_dir(folder).expect("the sources");
    let mut files: Vec<String> = paths
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into())
        .filter(|stem: &String| stem != "mod")
        .map(|stem| stem.replace('_', "-"))
        .collect();
    files.sort_unstable();
    let mut ids: Vec<&str> = REGISTRY.iter().map(|entry| entry.id).collect();
    ids.sort_unstable();
    assert_eq!(files, ids);
}

/// The kinds of the list say what the facts say.
#[test]
fn kinds_agree_with_the_facts() {
    let listed = KINDS.iter().flat_map(|kind| kind.methods);
    let listed: Vec<&str> = listed.map(|entry| entry.id).collect();
    let ids: Vec<&str> = REGISTRY.iter().map(|entry| entry.id).collect();
    assert_eq!(listed, ids);
    for kind in KINDS {
        for entry in kind.methods {
            let id = entry.id;
            assert_eq!(
                kind.about.contains("unbiased") || kind.name == "exhaustive",
                entry.bias.is_unbiased(),
                "{id}: bias"
            );
            let tape = entry.layers == Layers::Tape;
            assert_eq!(kind.about.contains("drop-in"), tape, "{id}: drop-in");
            if kind.about.contains("values of the cost only") {
                assert_eq!(entry.needs, [Need::Value], "{id}: needs");
            }
            if !entry.hard {
                assert_eq!(kind.name, "relaxation", "{id}: relaxed samples");
            }
        }
    }
}

/// Formulas are plain text, because documentation is also read without a network.
#[test]
fn documentation_needs_no_typesetting() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut comments = 0;
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).expect("the sources") {
            let path = file.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            let documentation = text.lines().map(str::trim_start);
            for line in documentation.filter(|l| l.starts_with("///") || l.starts_with("//!")) {
                comments += 1;
                let latex = line.contains('$') || line.contains("\\frac");
                assert!(!latex, "{}: {line}", path.display());
            }
        }
    }
    assert!(comments > 1000, "only {comments} lines of documentation");
}

#[test]
fn entries_are_complete_and_unique() {
    for (index, entry) in REGISTRY.iter().enumerate() {
        let id = entry.id;
        assert!(
            id.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{id}"
        );
        assert!(
            REGISTRY[..index].iter().all(|other| other.id != id),
            "{id} twice"
        );
        assert!(
            !entry.families.is_empty() && !entry.needs.is_empty(),
            "{id}"
        );
        assert!(
            !entry.reference.is_empty() && !entry.price.to_string().is_empty(),
            "{id}"
        );
        let mut documented: Vec<String> = entry.options.iter().map(|option| option.key()).collect();
        documented.sort_unstable();
        let fields: Vec<String> = entry.defaults().keys().cloned().collect();
        assert_eq!(documented, fields, "{id}: one row for each option");
        // Only an estimator without noise has no number of draws.
        let sampled = fields.iter().any(|field| field == "samples");
        assert!(sampled || id == "enumerate", "{id}");
    }
}

/// spec -> config -> estimator -> the same spec, for defaults and presets.
#[test]
fn specs_round_trip() {
    for entry in REGISTRY {
        let mut texts = vec![entry.id.to_owned()];
        texts.extend(
            entry
                .presets
                .iter()
                .map(|preset| format!("{}:preset={}", entry.id, preset.name)),
        );
        for text in texts {
            let spec: Spec = text.parse().expect("valid");
            let estimator = spec.build().expect("valid");
            assert_eq!(estimator.entry().id, entry.id);
            assert_eq!(estimator.spec().to_string(), text);
            // And from what a record holds.
            let again = entry.build(estimator.config()).expect("valid");
            assert_eq!(again.config(), estimator.config());
        }
    }
}

/// Every number can be changed, and the change is in the spec.
#[test]
fn changed_options_round_trip() {
    for entry in REGISTRY {
        for (key, default) in entry.defaults() {
            if !default.is_u64() {
                continue;
            }
            let value = default.as_u64().expect("a whole number") + 2;
            let text = format!("{}:{key}={value}", entry.id);
            let estimator = text.parse::<Spec>().expect("valid").build().expect("valid");
            assert_eq!(estimator.spec().to_string(), text);
            assert_eq!(display_option(&estimator.config()[&key]), value.to_string());
        }
    }
}

/// Options that are words, switches, fractions and texts.
#[test]
fn options_of_every_kind_round_trip() {
    for text in [
        "pwgf:bandwidth=2sd,cv=off,gain=projection,step=relative(0.25)",
        "pwgf:preset=paper,cv=off",
        "pwgf:bandwidth=1.5,kernel=mixture:0.5+2",
        "pwgf:projection=wasserstein,samples=4",
        "pwgf:categorical=per-coordinate,reduction=sum",
        "second-order-st:baseline=loo,samples=2",
        "reinforce:baseline=moving-average,decay=0.5",
        "reinforce:baseline=learned,hidden=7",
        "gumbel-softmax:temperature=0.3",
        "gumbel-softmax:temperature=1>0.1@1e-5",
        "gumbel-rao:draws=3,temperature=0.7",
        "gapped-straight-through:gap=2",
        "reinmax:temperature=1.25",
        "exponential-arrival:relaxation=sigmoid",
        "truncated-gumbel:hard=on,tail=0.001",
        "relaxed-top-k:temperature=2>0.5@1e-4",
        "fini:order=3",
        "enumerate:log-tail=30",
    ] {
        let estimator = text
            .parse::<Spec>()
            .and_then(|spec| spec.build())
            .expect(text);
        assert_eq!(estimator.spec().to_string(), text);
    }
}

/// A schedule is followed by asking for the estimator of a step.
#[test]
fn schedules_are_followed_by_steps() {
    let build = |text: &str| {
        text.parse::<Spec>()
            .and_then(|spec| spec.build())
            .expect(text)
    };
    let scheduled = build("gumbel-softmax:samples=2,temperature=1>0.1@1e-2");
    let at = |step| scheduled.at_step(step).expect("valid").spec().to_string();
    assert_eq!(at(0), "gumbel-softmax:samples=2,temperature=1");
    assert_eq!(at(1000), "gumbel-softmax:samples=2,temperature=0.1");
    let plain = build("arm:samples=3");
    assert_eq!(plain.at_step(5).expect("valid").spec(), plain.spec());
}

/// The error of a specification, in words.
fn error(text: &str) -> String {
    let built = text.parse::<Spec>().and_then(|spec| spec.build());
    built.map(|_| ()).expect_err("invalid").to_string()
}

#[test]
fn mistakes_are_named() {
    assert_eq!(
        error("straight-trough"),
        "there is no estimator `straight-trough`; did you mean straight-through, straight-through-gumbel?"
    );
    assert_eq!(
        error("straight-through:sample=3"),
        "`straight-through` has no option `sample`; did you mean samples?"
    );
    assert_eq!(
        error("straight-through:samples=many"),
        "`straight-through`: `samples` takes a whole number, got `many`"
    );
    assert_eq!(
        error("straight-through:samples=0"),
        "`straight-through` needs at least 1 sample, got 0"
    );
    assert_eq!(
        error("straight-through:preset=paper"),
        "`straight-through`: it has no presets"
    );
    for malformed in [
        "",
        ":",
        "straight-through:",
        "straight-through:samples",
        "a:b=",
        "a:b=1,b=2",
    ] {
        let parsed = malformed.parse::<Spec>();
        assert!(
            matches!(parsed, Err(Error::MalformedSpec { .. })),
            "{malformed}"
        );
    }
    assert!(matches!(
        find("no-such"),
        Err(Error::UnknownEstimator { .. })
    ));
}

/// Another name of a method makes that method, and records know it by its id.
#[test]
fn aliases_are_other_names() {
    let zgr = "zgr"
        .parse::<Spec>()
        .and_then(|spec| spec.build())
        .expect("known");
    assert_eq!(zgr.spec().to_string(), "reinmax");
    assert_eq!(find("zgr").expect("known").id, "reinmax");
    for entry in REGISTRY {
        for alias in entry.aliases {
            assert!(REGISTRY.iter().all(|other| other.id != *alias), "{alias}");
            assert_eq!(find(alias).expect("known").id, entry.id);
        }
    }
}
