//! A made-up experiment takes one folder, `coins`, and one word in a list: here is the word. It is then a
//! command, it is listed, reported and reproduced, and it resumes after an interruption like all others.

mod coins;
mod common;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Place, names, text};
use serde_json::Value;
use straightflow_experiments::runner::{Interrupt, Nowhere, RunError, Screen};
use straightflow_experiments::{EXPERIMENTS, Entry, Session};

fn list() -> Vec<Entry> {
    [EXPERIMENTS, &[Entry::of::<coins::This>()]].concat()
}

/// Runs a command line in this process and returns what it prints.
fn run(experiments: &[Entry], words: &[&str]) -> String {
    let words = ["straightflow"].iter().chain(words);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let mut out = Vec::new();
    let result = straightflow_cli::run(experiments, &words, &mut out);
    result.unwrap_or_else(|error| panic!("{words:?}: {error:#}"));
    String::from_utf8(out).expect("text")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn it_is_listed_and_is_a_command() {
    let listed = run(&list(), &["list", "--experiments"]);
    let ids: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: Vec<&str> = list().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, known);
    assert!(
        listed.contains("coins       Two coins, tossed again and again."),
        "{listed}"
    );
    let completions = run(&list(), &["completions", "bash"]);
    assert!(completions.contains("coins") && completions.contains("--tosses"));
}

#[test]
fn it_is_recorded_and_shown_everywhere_from_its_columns() {
    let place = Place::new();
    let directory = place.at("run");
    let command = ["coins", "--tosses", "200", "--out", text(&directory)];
    let printed = run(&list(), &command);
    let files = [
        "config.toml",
        "heads.svg",
        "metrics.jsonl",
        "summary.json",
        "timing.json",
    ];
    assert_eq!(names(&directory), files);
    let config = fs::read_to_string(directory.join("config.toml")).expect("a configuration");
    assert!(
        config.starts_with("experiment = \"coins\"\nversion = "),
        "{config}"
    );
    assert!(config.ends_with("tosses = 200\n"), "{config}");

    let summary = json(&directory.join("summary.json"));
    let table = &summary["tables"][0];
    let keys: Vec<&str> = table["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|column| column["key"].as_str())
        .collect();
    assert_eq!(
        keys,
        [
            "heads",
            "share",
            "surprise",
            "share_paper",
            "share_difference"
        ]
    );
    let bent = &table["rows"][1];
    assert_eq!(bent["label"], "bent");
    let share = bent["share"].as_f64().expect("a number");
    assert_eq!(bent["surprise"].as_f64(), Some(-share.ln()));
    assert_eq!(summary["rows"][1]["share"].as_f64(), Some(share));

    let page_path = place.at("page.html");
    run(
        &list(),
        &["report", text(&directory), "--out", text(&page_path)],
    );
    let page = fs::read_to_string(page_path).expect("a page");
    let surprise = format!("{:.2}", -share.ln());
    for shown in [&printed, &page] {
        for words in [
            "surprise",
            "paper, Table\u{a0}9",
            "0.700",
            &surprise,
            &format!("{share:.3}"),
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }
    for words in [
        "<h2>Two coins</h2>",
        "The share of heads.",
        "straightflow coins --tosses 200",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn it_is_reproduced() {
    let place = Place::new();
    let out = place.at("out");
    // With the others it would take ten minutes.
    let alone = [Entry::of::<coins::This>()];
    let printed = run(&alone, &["reproduce", "--quick", "--out", text(&out)]);
    assert!(
        printed.contains("$ straightflow coins --tosses 100 --out "),
        "{printed}"
    );
    assert!(out.join("quick/coins/summary.json").exists());
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<h2>Two coins</h2>"));
}

/// Interrupts a run when a share of it is done.
struct Impatient {
    interrupt: Interrupt,
    most: f64,
}

impl Screen for Impatient {
    fn progress(&mut self, share: f64, _left: Option<Duration>) {
        if share >= self.most && share < 1.0 {
            self.interrupt.flag().store(15, Ordering::Relaxed);
        }
    }

    fn note(&mut self, _text: &str) {}
}

/// The bytes of the summary, or none if the run was interrupted.
fn summary(entry: &Entry, directory: &Path, most: f64) -> Option<Vec<u8>> {
    let out = ["--out", text(directory)];
    let words = [entry.id].into_iter().chain(entry.small.split_whitespace());
    let words: Vec<&str> = words.chain(out).collect();
    let matches = entry.command().get_matches_from(&words);
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut screen = Impatient {
        interrupt: Interrupt::default(),
        most,
    };
    let interrupt = screen.interrupt.clone();
    let session = Session {
        words: &words,
        interrupt: &interrupt,
    };
    match entry.run(&matches, &session, &mut screen) {
        Ok(_) => Some(fs::read(directory.join("summary.json")).expect("a summary")),
        Err(RunError::Stopped) => {
            assert!(
                !directory.join("summary.json").exists(),
                "{}: it is complete",
                entry.id
            );
            None
        }
        Err(error) => panic!("{}: {error}", entry.id),
    }
}

#[test]
fn every_experiment_of_the_list_goes_on_after_interruptions() {
    for entry in list() {
        let place = Place::new();
        let expected = summary(&entry, &place.at("whole"), 2.0).expect("nobody interrupts it");
        let directory = place.at("interrupted");
        let mut interruptions = 0;
        let mut recorded = Vec::new();
        for most in [0.2, 0.4, 0.6, 0.8] {
            let complete = summary(&entry, &directory, most);
            interruptions += usize::from(complete.is_none());
            let now = common::records(&directory);
            assert!(
                now.starts_with(&recorded),
                "{}: a record was lost",
                entry.id
            );
            recorded = now;
        }
        assert!(interruptions > 0, "{} was never interrupted", entry.id);
        let resumed = summary(&entry, &directory, 2.0).expect("nobody interrupts it");
        assert!(resumed == expected, "{}: other bits", entry.id);
        let whole = names(&place.at("whole"));
        assert_eq!(names(&directory), whole, "{}", entry.id);
    }
}

/// Without a directory an interruption leaves nothing, and says no such thing as going on.
#[test]
fn an_unrecorded_run_runs_to_its_end() {
    let entry = Entry::of::<coins::This>();
    let words = ["coins", "--tosses", "50", "--json"];
    let matches = entry.command().get_matches_from(words);
    let words = words.map(str::to_owned);
    let interrupt = Interrupt::default();
    let session = Session {
        words: &words,
        interrupt: &interrupt,
    };
    let completed = entry.run(&matches, &session, &mut Nowhere).expect("a run");
    assert!(completed.directory.is_none() && completed.failure.is_none());
    let json: Value = serde_json::from_str(&completed.json.expect("JSON")).expect("JSON");
    assert_eq!(json["experiment"], "coins");
    interrupt.flag().store(2, Ordering::Relaxed);
    let stopped = entry.run(&matches, &session, &mut Nowhere);
    assert!(matches!(stopped, Err(RunError::Stopped)));
}
