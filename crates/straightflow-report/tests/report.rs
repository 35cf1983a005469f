//! Run directories to a page.

mod synthetic;

use std::fs;
use std::path::PathBuf;

use straightflow_report::html::{self, ReportError};
use straightflow_report::picture::Picture;
use tempfile::TempDir;

fn runs() -> (TempDir, Vec<PathBuf>) {
    let parent = tempfile::tempdir().expect("a directory");
    let runs = synthetic::runs(parent.path());
    (parent, runs)
}

/// The text of the first cell row that begins with this label, tags removed.
fn row(page: &str, label: &str) -> Vec<String> {
    let start = page
        .find(&format!("<th scope=\"row\">{label}"))
        .expect(label);
    let end = start + page[start..].find("</tr>").expect("the end of the row");
    let cells = page[start..end].split("<td").skip(1);
    cells
        .map(|cell| {
            let text = cell.split_once('>').expect("a tag").1;
            text.split("</td>").next().expect("a cell").to_owned()
        })
        .collect()
}

#[test]
fn the_page_has_every_run_with_its_command_numbers_and_plots() {
    let (_parent, runs) = runs();
    let page = html::render(&runs, &synthetic::show::show).expect("a page");
    for title in [
        "The Poisson game",
        "The autoencoders of Table 2",
        "vae",
        "toy",
        "lab",
    ] {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    for words in [
        "straightflow poisson --seeds 20 --epochs 120",
        "<p>Twenty seeds.</p>",
        "<dt>seeds</dt><dd>20</dd>",
        "These numbers are made up.",
        ">paper, Table\u{a0}1</th>",
        "<dt>mean</dt><dd>over seeds</dd>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<figure>").count(), 8);
    assert_eq!(page.matches("<svg").count(), 6);
    assert_eq!(page.matches("<img").count(), 2);
    assert_eq!(
        row(&page, "straight-through"),
        [
            "5.0040",
            "0.1650",
            "5.1049",
            "0.1610",
            "−0.1009",
            "+0.0040",
            "144"
        ]
    );
    assert_eq!(
        row(&page, "pWGF without control variate"),
        ["5.0340", "0.1710", "–", "–", "–", "–", "–"]
    );
    assert!(page.contains("id=\"formulas\"") && page.contains("<math"));
}

#[test]
fn a_grid_has_a_table_for_each_part_beside_the_paper() {
    let (_parent, runs) = runs();
    let page = html::render(&runs[2..3], &synthetic::show::show).expect("a page");
    for caption in ["linear", "nonlinear", "two-layer"] {
        let caption = format!("<caption>{caption}, bernoulli</caption>");
        assert!(page.contains(&caption), "{caption}");
    }
    assert!(page.contains(">paper, Table\u{a0}2</th>"));
    assert_eq!(
        row(&page, "ARM"),
        ["112.28", "0.16", "110.30", "+1.98", "100"]
    );
    // The paper has none.
    assert_eq!(row(&page, "DisARM")[2..4], ["–", "–"]);
    assert_eq!(
        page.matches("<dt>test (nats)</dt><dd>negative ELBO")
            .count(),
        1,
        "each heading is explained once"
    );
}

#[test]
fn a_summary_that_does_not_fit_its_experiment_is_refused() {
    let (_parent, runs) = runs();
    let summary = runs[0].join("summary.json");
    fs::write(
        &summary,
        r#"{"experiment": "poisson", "rows": [{"label": "a"}]}"#,
    )
    .expect("written");
    match html::render(&runs[..1], &synthetic::show::show) {
        Err(ReportError::Unexpected { path, reason }) => {
            assert_eq!(path, summary);
            assert!(
                reason.contains("not a summary of `poisson`: missing field"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn pictures_are_parts_of_the_page_with_captions() {
    let (_parent, runs) = runs();
    let mut picture = Picture::new(2, 3).expect("a size");
    picture.push_row(&[0.5; 12]).expect("two images");
    let file = picture.png(2).expect("a file");
    for name in ["weights.png", "prior.png", "reconstructions.png"] {
        fs::write(runs[0].join(name), &file).expect("written");
    }
    let page = html::render(&runs[..1], &synthetic::show::show).expect("a page");
    let places: Vec<Option<usize>> = [
        "Images above, their reconstructions below. <span class=\"where\">reconstructions.png",
        "Samples of the prior. <span class=\"where\">prior.png",
        "<figcaption>weights <span class=\"where\">weights.png",
    ]
    .map(|caption| page.find(caption))
    .to_vec();
    assert!(places.iter().all(Option::is_some) && places.is_sorted());
    let image = "<img src=\"data:image/png;base64,iVBORw0KGgo";
    assert_eq!(page.matches(image).count(), 3);
    assert_eq!(page.matches("width=\"14\" height=\"4\" alt=\"").count(), 3);
    assert!(page.contains("img-src data:"));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let (_parent, runs) = runs();
    let page = html::render(&runs, &synthetic::show::show).expect("a page");
    for word in ["<script", "<link", "@import", "url(", "javascript:"] {
        assert!(!page.contains(word), "{word}");
    }
    let inside = page.matches("src=\"data:image/png;base64,").count();
    assert_eq!(page.matches("src=").count(), inside);
    // The only addresses are names of namespaces.
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    assert_eq!(
        addresses,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
    assert!(page.contains("default-src 'none'"));
    // The style of the plots is there once, not once in each plot.
    assert_eq!(page.matches("<style>").count(), 1);
    assert!(page.contains(".sf-plot .paper{fill:#ffffff}"));
}

#[test]
fn the_same_runs_give_the_same_page() {
    let (_parent, runs) = runs();
    let page = html::render(&runs, &synthetic::show::show).expect("a page");
    assert_eq!(
        page,
        html::render(&runs, &synthetic::show::show).expect("a page")
    );
    assert!(!page.contains(&std::env::temp_dir().display().to_string()));
}

#[test]
fn values_are_text_and_not_markup() {
    let (_parent, runs) = runs();
    let summary = "{\"experiment\":\"<b>x</b>\",\"rows\":[{\"label\":\"<i>\",\"a\":\"&amp;\"}]}";
    fs::write(runs[0].join("summary.json"), summary).expect("written");
    let page = html::render(&runs[..1], &synthetic::show::show).expect("a page");
    assert!(!page.contains("<b>x</b>") && !page.contains("<i>\""));
    assert!(page.contains("&#38;amp;") || page.contains("&amp;amp;"));
}

#[test]
fn an_unknown_experiment_has_a_table_of_its_fields() {
    let (_parent, runs) = runs();
    let summary = r#"{"experiment": "gates", "best": 98.25, "rows": [
        {"label": "arm", "elbo": -98.2512, "epochs": 3}, {"label": "disarm", "elbo": null}],
        "per_seed": [{"id": "seed 0", "elbo": -99.0}]}"#;
    fs::write(runs[0].join("summary.json"), summary).expect("written");
    let page = html::render(&runs[..1], &synthetic::show::show).expect("a page");
    assert!(page.contains("<h2>gates</h2>"));
    assert_eq!(row(&page, "arm"), ["−98.25", "3"]);
    assert_eq!(row(&page, "disarm"), ["–", "–"]);
    assert_eq!(row(&page, "seed 0"), ["−99.00"]);
    assert!(page.contains("<dt>best</dt><dd>98.25</dd>"));
}

#[test]
fn a_report_replaces_a_report_and_nothing_else() {
    let (parent, runs) = runs();
    let page = html::render(&runs[..1], &synthetic::show::show).expect("a page");
    let out = parent.path().join("report.html");
    html::write(&out, &page).expect("written");
    html::write(&out, &page).expect("replaced");
    assert_eq!(fs::read_to_string(&out).expect("the report"), page);

    let thesis = parent.path().join("thesis.html");
    fs::write(&thesis, "<p>precious").expect("written");
    let error = html::write(&thesis, &page).expect_err("not a report");
    assert!(matches!(error, ReportError::NotAReport { .. }));
    assert_eq!(fs::read(&thesis).expect("kept"), b"<p>precious");

    for place in [
        runs[0].clone(),
        thesis.join("report.html"),
        parent.path().join("no/report.html"),
    ] {
        let error = html::write(&place, &page).expect_err("not a place for a file");
        assert!(
            matches!(&error, ReportError::Write { path, .. } if *path == place),
            "{error}"
        );
    }
}
