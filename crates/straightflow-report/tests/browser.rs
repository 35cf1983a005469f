//! A report in a real browser: run with `cargo test --release --workspace --test browser -- --ignored`;
//! `.ci/run` does so where it finds Chromium. It needs Chromium, named by the environment variable
//! `CHROMIUM` or found as `chromium`.
//!
//! The report is one of made-up runs, or the file that `STRAIGHTFLOW_REPORT` names. Screenshots and
//! the page of made-up runs go to `target/report-screenshots`, or to the directory that
//! `STRAIGHTFLOW_SCREENSHOTS` names; look at them.

mod chromium;
mod synthetic;

use std::env;
use std::fs;
use std::path::PathBuf;

use chromium::Browser;
use straightflow_report::html;

/// The folder for the pictures.
fn screenshots() -> PathBuf {
    let default =
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/report-screenshots");
    let path = env::var_os("STRAIGHTFLOW_SCREENSHOTS").map_or_else(default, PathBuf::from);
    fs::create_dir_all(&path).expect("a place for screenshots");
    path
}

/// The texts of plots that do not lie inside of their plots.
const CUT: &str = "[...document.querySelectorAll('svg.sf-plot text')].filter(text => {
    const [inner, outer] = [text, text.ownerSVGElement].map(one => one.getBoundingClientRect());
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent).join()";

#[test]
#[ignore = "needs Chromium"]
fn the_report_is_right_on_screens_and_in_print() {
    let parent = tempfile::tempdir().expect("a directory");
    let report = match env::var_os("STRAIGHTFLOW_REPORT") {
        Some(path) => fs::canonicalize(path).expect("the report"),
        None => {
            let runs = synthetic::runs(parent.path());
            let page = html::render(&runs, &synthetic::show::show).expect("a page");
            let path = fs::canonicalize(screenshots()).expect("a path");
            let path = path.join("report.html");
            html::write(&path, &page).expect("written");
            path
        }
    };
    let mut browser = Browser::start(parent.path());
    for scheme in ["light", "dark"] {
        for width in [1600, 1280, 800, 400] {
            let size = browser.open(&report, scheme, width);
            assert!(
                size.scroll_width <= size.client_width,
                "{scheme}, {width} px: the page is {} px wide on a screen of {} px",
                size.scroll_width,
                size.client_width
            );
            assert_eq!(size.client_width, width);
            assert_eq!(
                browser.complaints(),
                Vec::<String>::new(),
                "{scheme}, {width} px"
            );
            // A picture that cannot be read or that the policy forbids has no width.
            let unseen = "[...document.images].filter(i => !i.naturalWidth).map(i => i.alt).join()";
            assert_eq!(browser.text(unseen), "");
            // What lies outside of a plot is cut off.
            assert_eq!(browser.text(CUT), "", "{scheme}, {width} px: cut off");
            let picture = browser.screenshot(width, size.scroll_height);
            let file = screenshots().join(format!("report-{scheme}-{width}.png"));
            fs::write(&file, picture).expect("a screenshot");
            let background = browser.text("getComputedStyle(document.body).backgroundColor");
            let expected = if scheme == "light" {
                "rgb(255, 255, 255)"
            } else {
                "rgb(20, 24, 29)"
            };
            assert_eq!(background, expected);
        }
    }
    let pdf = browser.pdf();
    assert!(pdf.starts_with(b"%PDF-"));
    fs::write(screenshots().join("report.pdf"), pdf).expect("a file");
}
