//! SVG files as parts of a page.

use std::path::Path;

use roxmltree::{Document, Node};

use super::ReportError;
use crate::plot;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// A plot to be put into a page.
pub struct Figure {
    /// The name of its file.
    pub file: String,
    pub caption: String,
    /// The element `svg`.
    pub svg: String,
    /// What can be hidden: the class of each named group, and its name.
    pub series: Vec<(String, String)>,
}

impl Figure {
    /// Reads a file, of which the page can be sure that it neither runs nor loads anything.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ReportError> {
        let document = Document::parse(text).map_err(|error| ReportError::Broken {
            path: path.to_owned(),
            line: error.pos().row as usize,
            reason: "it is not a plain SVG file".to_owned(),
        })?;
        let root = document.root_element();
        if !root.has_tag_name((NAMESPACE, "svg")) {
            return Err(ReportError::Unexpected {
                path: path.to_owned(),
                reason: "it is not an SVG file".to_owned(),
            });
        }
        if let Some(node) = document.descendants().find(runs_or_loads) {
            return Err(ReportError::Broken {
                path: path.to_owned(),
                line: document.text_pos_at(node.range().start).row as usize,
                reason: "a report takes no plots with scripts or links to other files".to_owned(),
            });
        }
        let child = |name: &str| {
            let mut children = root.children();
            let child = children.find(|node| node.has_tag_name((NAMESPACE, name)));
            child
                .and_then(|node| node.text())
                .filter(|text| !text.trim().is_empty())
        };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let caption = child("desc").or_else(|| child("title"));
        Ok(Self {
            caption: caption.unwrap_or_default().to_owned(),
            svg: without_our_style(text, &root),
            series: series(&root),
            file: file.into_owned(),
        })
    }
}

/// The groups with names, if there are several to choose from.
fn series(root: &Node<'_, '_>) -> Vec<(String, String)> {
    let groups = root.descendants().filter_map(|node| {
        let (class, name) = (node.attribute("class")?, node.attribute("data-name")?);
        Some((class.to_owned(), name.to_owned()))
    });
    let groups: Vec<_> = groups.collect();
    if groups.len() > 1 { groups } else { Vec::new() }
}

/// The element's text. The page has the style of our own plots once for all of them, also of plots that
/// an older version drew.
fn without_our_style(text: &str, root: &Node<'_, '_>) -> String {
    let all = root.range();
    let is_ours = root.attribute("class") == Some(plot::CLASS);
    let style = root
        .children()
        .find(|node| is_ours && node.has_tag_name((NAMESPACE, "style")));
    match style.map(|node| node.range()) {
        Some(style) => text[all.start..style.start].to_owned() + &text[style.end..all.end],
        None => text[all].to_owned(),
    }
}

fn runs_or_loads(node: &Node<'_, '_>) -> bool {
    const ACTIVE: [&str; 6] = [
        "script",
        "foreignObject",
        "image",
        "iframe",
        "animate",
        "set",
    ];
    let name = node.tag_name().name();
    let style = name == "style" && node.text().is_some_and(loads);
    let mut attributes = node.attributes();
    let attribute = attributes.any(|attribute| {
        let outward = attribute.name() == "href" && !attribute.value().starts_with('#');
        attribute.name().starts_with("on") || outward || loads(attribute.value())
    });
    ACTIVE.contains(&name) || style || attribute
}

/// Whether a style names something outside of the file.
fn loads(style: &str) -> bool {
    let mut links = style.split("url(").skip(1);
    let outward = |link: &str| !link.trim_start_matches(['"', '\'', ' ']).starts_with('#');
    style.contains("@import") || links.any(outward)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Figure, ReportError> {
        let text = format!("<?xml version=\"1.0\"?>\n<svg xmlns=\"{NAMESPACE}\">\n{body}</svg>\n");
        Figure::parse(Path::new("run/plot.svg"), &text)
    }

    #[test]
    fn a_figure_is_the_element_without_what_surrounds_it() {
        let figure = parse("<title>a &lt; b</title><path d=\"M0 0\"/>").expect("a figure");
        assert!(figure.svg.starts_with("<svg") && figure.svg.ends_with("</svg>"));
        assert_eq!(
            (figure.caption.as_str(), figure.file.as_str()),
            ("a < b", "plot.svg")
        );
    }

    #[test]
    fn our_style_is_left_out_and_others_stay() {
        let ours = plot::Curves::default().svg();
        let figure = Figure::parse(Path::new("plot.svg"), &ours).expect("a figure");
        assert!(!figure.svg.contains("<style>") && figure.svg.contains("class=\"paper\""));
        assert!(
            parse("<style>.a{fill:red}</style>")
                .expect("a figure")
                .svg
                .contains("<style>")
        );
    }

    #[test]
    fn what_runs_or_loads_is_refused_with_its_line() {
        for body in [
            "<script>1</script>",
            "<g onclick=\"x()\"/>",
            "<a href=\"https://example.org\"/>",
            "<image href=\"#a\"/>",
            "<rect style=\"fill:url(http://example.org/a)\"/>",
            "<style>@import 'a.css';</style>",
        ] {
            match parse(body) {
                Err(ReportError::Broken { line: 3, .. }) => {}
                other => panic!("{body}: {:?}", other.err()),
            }
        }
        assert!(parse("<rect fill=\"url(#a)\"/>").is_ok());
    }

    #[test]
    fn broken_and_foreign_files_are_refused() {
        assert!(matches!(
            parse("<g>"),
            Err(ReportError::Broken { line: 3, .. })
        ));
        let html = Figure::parse(Path::new("a.svg"), "<html/>");
        assert!(matches!(html, Err(ReportError::Unexpected { .. })));
    }
}
