//! Every kind of plot as a file: valid, complete, and readable without colours.

mod synthetic;

use roxmltree::{Document, Node};
use straightflow_report::plot::{Axis, Candidate, Curves, Dot, Dots, Flow, Line, Pareto, Weights};

/// All kinds with sensible numbers.
fn plots() -> Vec<String> {
    vec![
        synthetic::curves().svg(),
        synthetic::weights().svg(),
        synthetic::flow().svg(),
        synthetic::dots().svg(),
        synthetic::pareto().svg(),
    ]
}

/// All kinds with numbers that have no place anywhere.
fn plots_of_nothing() -> Vec<String> {
    let bad = vec![(0.0, f64::NAN), (f64::INFINITY, 1.0), (f64::NAN, f64::NAN)];
    let lines = vec![Line {
        label: "bad".into(),
        points: bad.clone(),
        band: bad.clone(),
        ..Line::default()
    }];
    let numbers = vec![f64::NAN, f64::NEG_INFINITY];
    let candidate = |price, error| Candidate {
        label: "bad".into(),
        price,
        error,
        group: 100,
    };
    let dot = |value| Dot {
        label: "bad".into(),
        value,
        interval: Some((value, 1.0)),
        group: 100,
    };
    vec![
        Curves::default().svg(),
        Weights::default().svg(),
        Flow::default().svg(),
        Pareto::default().svg(),
        Dots::default().svg(),
        Curves {
            lines: lines.clone(),
            y_axis: Axis::Log,
            ..Curves::default()
        }
        .svg(),
        Weights {
            lines,
            ..Weights::default()
        }
        .svg(),
        Flow {
            samples: numbers.clone(),
            moved: numbers,
            law: bad.clone(),
            projected: bad,
            ..Flow::default()
        }
        .svg(),
        Pareto {
            error_axis: Axis::Log,
            points: vec![
                candidate(-1.0, 1.0),
                candidate(f64::NAN, 2.0),
                candidate(1.0, f64::INFINITY),
            ],
            ..Pareto::default()
        }
        .svg(),
        Dots {
            rows: vec![dot(f64::NAN), dot(f64::INFINITY)],
            ..Dots::default()
        }
        .svg(),
    ]
}

fn texts<'a>(document: &'a Document<'_>) -> Vec<&'a str> {
    let elements = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    elements.filter_map(|node| node.text()).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> Option<f64> {
    let value = node.attribute(name)?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}=\"{value}\"")),
    )
}

#[test]
fn plots_are_svg_without_scripts_or_links() {
    for text in plots().into_iter().chain(plots_of_nothing()) {
        let document = Document::parse(&text).expect("well-formed");
        let root = document.root_element();
        assert!(root.has_tag_name(("http://www.w3.org/2000/svg", "svg")));
        for node in document.descendants() {
            assert!(!["script", "image", "use", "foreignObject"].contains(&node.tag_name().name()));
            for attribute in node.attributes() {
                assert!(!attribute.name().starts_with("on") && attribute.name() != "href");
                assert!(!attribute.value().contains("NaN") && !attribute.value().contains("inf"));
            }
        }
        assert!(!text.contains("url(") && !text.contains("@import"));
    }
}

#[test]
fn everything_is_inside_of_the_picture() {
    for text in plots() {
        let document = Document::parse(&text).expect("well-formed");
        let root = document.root_element();
        let (width, height) = (number(&root, "width"), number(&root, "height"));
        let (width, height) = (width.expect("a width"), height.expect("a height"));
        for node in document.descendants() {
            for (name, limit) in [
                ("x", width),
                ("x1", width),
                ("x2", width),
                ("y", height),
                ("y1", height),
                ("y2", height),
            ] {
                let Some(value) = number(&node, name) else {
                    continue;
                };
                assert!((0.0..=limit).contains(&value), "{name}={value} of {node:?}");
            }
            if let (Some(x), Some(extent)) = (number(&node, "x"), number(&node, "width")) {
                assert!(x + extent <= width + 0.02, "{node:?}");
            }
        }
    }
}

#[test]
fn plots_say_what_they_are() {
    let plot = synthetic::curves();
    let text = plot.svg();
    let document = Document::parse(&text).expect("well-formed");
    let child = |name: &str| {
        let mut children = document.root_element().children();
        children
            .find(|node| node.tag_name().name() == name)
            .and_then(|node| node.text())
    };
    assert_eq!(child("title"), Some(plot.title.as_str()));
    assert_eq!(child("desc"), Some(plot.caption.as_str()));
    let texts = texts(&document);
    assert!(texts.contains(&plot.x_label.as_str()) && texts.contains(&plot.y_label.as_str()));
    assert!(texts.contains(&"rate of the data"));
}

#[test]
fn lines_differ_in_dashes_and_carry_their_names() {
    let plot = synthetic::curves();
    let text = plot.svg();
    let document = Document::parse(&text).expect("well-formed");
    let classes = document
        .descendants()
        .filter_map(|node| node.attribute("class"));
    let mut dashes: Vec<&str> = classes
        .filter(|class| class.starts_with("line "))
        .filter_map(|class| class.split(' ').find(|class| class.starts_with('d')))
        .collect();
    // Each line, and a piece of it before its name.
    assert_eq!(dashes.len(), 2 * plot.lines.len());
    dashes.sort_unstable();
    dashes.dedup();
    assert_eq!(dashes.len(), plot.lines.len());
    let words = texts(&document).join(" ");
    for line in &plot.lines {
        assert!(words.contains(&line.label), "{}", line.label);
    }
}

#[test]
fn the_labels_of_lines_do_not_overlap() {
    let text = synthetic::curves().svg();
    let document = Document::parse(&text).expect("well-formed");
    let labels = document.descendants().filter(|node| {
        let class = node.attribute("class").unwrap_or_default();
        node.tag_name().name() == "text" && class.starts_with('f')
    });
    let mut heights: Vec<f64> = labels.filter_map(|node| number(&node, "y")).collect();
    assert!(heights.len() >= 6);
    heights.sort_by(f64::total_cmp);
    for pair in heights.windows(2) {
        assert!(pair[1] - pair[0] >= 15.0, "{pair:?}");
    }
}

#[test]
fn one_plot_is_light_dark_and_printable() {
    let text = synthetic::weights().svg();
    let style = text.split("<style>").nth(1).expect("a style");
    let (base, dark) = style
        .split_once("@media screen and (prefers-color-scheme:dark)")
        .expect("dark colours");
    assert!(base.contains(".sf-plot .paper{fill:#ffffff}"));
    assert!(dark.contains(".sf-plot .paper{fill:#14181d}"));
}

#[test]
fn the_same_numbers_give_the_same_bytes() {
    assert_eq!(plots(), plots());
}

#[test]
fn labels_are_text_and_not_markup() {
    let line = Line {
        label: "a < b & c".into(),
        points: vec![(0.0, 0.0), (1.0, 1.0)],
        ..Line::default()
    };
    let plot = Curves {
        title: "<script>alert(1)</script>".into(),
        lines: vec![line],
        ..Curves::default()
    };
    let text = plot.svg();
    let document = Document::parse(&text).expect("well-formed");
    assert!(
        document
            .descendants()
            .all(|node| node.tag_name().name() != "script")
    );
    assert!(texts(&document).contains(&"a < b & c"));
}
