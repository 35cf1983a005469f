//! The pinned gradients of the registry.

use std::fs;

use straightflow_conformance::pins::{Pins, REWRITE, differences, gradients, path};
use straightflow_conformance::subject::registry;

#[test]
fn pins() {
    let today: Pins = registry()
        .iter()
        .map(|subject| {
            let gradients = gradients(subject).expect("a gradient for each family");
            (subject.spec.clone(), gradients)
        })
        .collect();
    if std::env::var_os("STRAIGHTFLOW_PIN").is_some() {
        let text = serde_json::to_string_pretty(&today).expect("plain numbers");
        fs::write(path(), text + "\n").expect("the crate's directory is writable");
        return;
    }
    let text = fs::read_to_string(path()).unwrap_or_else(|_| "{}".to_owned());
    let pinned: Pins = serde_json::from_str(&text).expect("a file of pins");
    let lines = differences(&pinned, &today);
    assert!(
        lines.is_empty(),
        "{} gradients differ from the pinned ones. If that is intended, it is a changelog event; \
         rewrite the file with\n  {REWRITE}\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// The comparison sees a change of one part in ten thousand, a missing pin and a stale one.
#[test]
fn pins_that_differ_are_seen() {
    let pins = |spec: &str, value: f64| -> Pins {
        let families = [("poisson".to_owned(), vec![1.0, value])].into();
        [(spec.to_owned(), families)].into()
    };
    assert!(differences(&pins("a", 2.0), &pins("a", 2.0)).is_empty());
    assert_eq!(differences(&pins("a", 2.0), &pins("a", 2.0002)).len(), 1);
    assert_eq!(differences(&pins("a", 2.0), &pins("a", f64::NAN)).len(), 1);
    assert_eq!(differences(&pins("a", 2.0), &pins("b", 2.0)).len(), 2);
}
