//! The list of families: names, examples, and the weights of unit moves, for every one of them; and
//! what is special about the geometric one.

use burn::tensor::{DType, Tensor};
use straightflow::Key;
use straightflow::distribution::{
    Distribution, Family, FamilyKind, Geometric, Law, NegativeBinomial,
};
use straightflow::estimator::{EstimatorExt, REGISTRY, Spec};
use straightflow::objective::ObjectiveKind;

use crate::support::{assert_close, leaf, tensor, values};

#[test]
fn names_in_records_are_the_displayed_ones() {
    for kind in FamilyKind::ALL {
        let recorded = serde_json::to_value(kind).expect("a name");
        assert_eq!(recorded, kind.to_string());
    }
    assert_eq!(
        FamilyKind::NegativeBinomial.to_string(),
        "negative-binomial"
    );
    // Width and alignment are those of the format.
    assert_eq!(format!("{:>11}", FamilyKind::Geometric), "  geometric");
}

#[test]
fn examples_are_valid_laws_of_their_family() {
    for kind in FamilyKind::ALL {
        let examples = kind.examples();
        assert!(examples.len() >= 2, "{kind}: a moderate and a rare one");
        for (family, natural) in examples {
            assert_eq!(family.kind(), *kind);
            let k = natural.len();
            let law = Law::new(family, tensor(&natural, [1, 1, k], DType::F64)).expect("valid");
            law.validate().expect("finite parameters");
            assert_eq!(family.is_vector(), k > 1);
            let lattice = matches!(family, Family::Rounded { .. });
            assert_eq!(family.is_vector() || lattice, law.count_laws().is_none());
            let maximum = law.count_laws().map(|laws| laws[0].maximum());
            assert_eq!(family.is_finite(), maximum != Some(None), "{family:?}");
        }
    }
}

/// Types of the library are named where a reader looks for them.
#[test]
fn pages_list_every_family() {
    let pages = [
        ("README.md", include_str!("../../README.md")),
        (
            "docs/notation.md",
            include_str!("../../../../docs/notation.md"),
        ),
        (
            "distribution/mod.rs",
            include_str!("../../src/distribution/mod.rs"),
        ),
    ];
    for (page, text) in pages {
        for kind in FamilyKind::ALL {
            let rows = text.lines().filter(|line| line.contains("| "));
            let named = rows
                .filter(|row| row.contains(&format!("{kind:?}")))
                .count();
            assert!(named > 0, "{page} has no row for {kind:?}");
        }
    }
}

/// The folder, its `mod` lines and the list agree: every file with formulas is in the list.
#[test]
fn the_list_has_every_family_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/distribution");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.is_file())
        .filter(|path| {
            let text = std::fs::read_to_string(path).expect("text");
            text.contains("\npub(super) fn formulas(")
        })
        .map(|path| {
            let stem = path.file_stem().expect("a name");
            stem.to_string_lossy().replace('_', "-")
        })
        .collect();
    files.sort();
    let mut listed: Vec<String> = FamilyKind::ALL.iter().map(FamilyKind::to_string).collect();
    listed.sort();
    assert_eq!(files, listed);
}

fn pair(log_means: &[f64], dtype: DType) -> (Law, Law) {
    let shape = [1, log_means.len(), 1];
    let law = |family| Law::new(family, leaf(log_means, shape, dtype)).expect("valid");
    (
        law(Family::Geometric),
        law(Family::NegativeBinomial { dispersion: 1.0 }),
    )
}

#[test]
fn geometric_is_negative_binomial_with_dispersion_one_to_the_bit() {
    let log_means = [-30.0, -2.0, 0.0, 0.7, 3.0, 14.0];
    let other = [0.3, -1.0, 0.5, 0.7, -2.0, 13.0];
    for dtype in [DType::F32, DType::F64] {
        let (geometric, general) = pair(&log_means, dtype);
        let (p, q) = pair(&other, dtype);
        let z = geometric.sample(Key::new(3), 50);
        assert_eq!(
            values(z.clone()),
            values(general.sample(Key::new(3), 50)),
            "samples"
        );
        type Number = fn(&Law) -> Vec<f64>;
        let numbers: [(&str, Number); 5] = [
            ("mean", |law| values(law.mean())),
            ("variance", |law| values(law.variance())),
            ("chain factor", |law| values(law.chain_factor())),
            ("weight", |law| {
                values(law.weight().expect("a count").natural())
            }),
            ("entropy", |law| values(law.entropy().expect("closed form"))),
        ];
        for (name, number) in numbers {
            assert_eq!(number(&geometric), number(&general), "{name}, {dtype:?}");
        }
        let density = |law: &Law| {
            let log_prob = law.log_prob(z.clone());
            let gradient = law.natural().grad(&log_prob.clone().sum().backward());
            (values(log_prob), values(gradient.expect("a gradient")))
        };
        assert_eq!(density(&geometric), density(&general));
        assert_eq!(
            values(geometric.score(z.clone())),
            values(general.score(z.clone()))
        );
        let divergence = |a: &Law, b: &Law| values(a.kl(b).expect("one family"));
        assert_eq!(divergence(&geometric, &p), divergence(&general, &q));
        assert!(
            geometric.kl(&general).is_err(),
            "two names are two families"
        );
    }
}

/// Every method that takes both gives both the same gradient.
#[test]
fn methods_do_not_tell_geometric_from_dispersion_one() {
    let log_means = tensor(&[0.4, -0.9], [1, 2], DType::F64);
    let geometric = Geometric::from_log_means(log_means.clone()).expect("valid");
    let general = NegativeBinomial::from_log_means(1.0, log_means).expect("valid");
    let methods = REGISTRY.iter().filter(|entry| {
        entry.families.contains(&FamilyKind::Geometric)
            && entry.objective == ObjectiveKind::Expectation
    });
    let specs = methods.map(|entry| match entry.id {
        "debiased-st" => "debiased-st:preset=stateless",
        id => id,
    });
    for spec in specs {
        let estimator = spec.parse::<Spec>().and_then(|spec| spec.build());
        let estimator = estimator.expect("valid");
        let cost = |z: Tensor<3>| (z * 0.7).sin().sum_dim(2);
        let a = estimator.gradient(Key::new(8), &geometric, cost);
        let b = estimator.gradient(Key::new(8), &general, cost);
        assert_eq!(
            values(a.expect("supported")),
            values(b.expect("supported")),
            "{spec}"
        );
    }
}

/// `P(z) = p (1 - p)^z`, `p = 1 / (1 + m)`, and the entropy `-ln p - m ln(1 - p)`.
#[test]
fn geometric_closed_forms() {
    let means = [0.2, 1.0, 4.0, 60.0];
    let q = Geometric::from_means(tensor(&means, [1, 4], DType::F64)).expect("valid");
    let z: Vec<f64> = (0..40).map(f64::from).collect();
    let each = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        z.iter()
            .flat_map(|z| means.iter().map(|m| f(*z, *m)))
            .collect()
    };
    let draws = tensor(&each(&|z, _| z), [40, 1, 4, 1], DType::F64);
    let want = each(&|z, m| -m.ln_1p() + z * (m.ln() - m.ln_1p()));
    let got = values(q.law().log_prob_each(draws.clone()));
    assert_close("log-probabilities", &got, &want, 1e-13);
    let want = each(&|z, m| (z - m) / (1.0 + m));
    assert_close("scores", &values(q.law().score(draws)), &want, 1e-13);
    let variances = means.map(|m| m + m * m);
    assert_close("variances", &values(q.variance()), &variances, 1e-13);
    let entropy: f64 = means
        .iter()
        .map(|m| m.ln_1p() + m * (m.ln_1p() - m.ln()))
        .sum();
    let got = values(q.entropy().expect("closed form"));
    assert_close("entropy", &got, &[entropy], 1e-13);
    assert_eq!(values(q.log_means()).len(), 4);
    let refused = Geometric::from_means(tensor(&[-1.0], [1, 1], DType::F64)).expect("a shape");
    let message = refused.validate().expect_err("a negative mean").to_string();
    assert!(message.contains("geometric") && message.contains("positive"));
}
