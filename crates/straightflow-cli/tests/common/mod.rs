//! What the tests of commands that record runs share.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

pub const BINARY: &str = env!("CARGO_BIN_EXE_straightflow");

pub fn straightflow(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    straightflow(arguments).output().expect("the binary runs")
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// What a process said on stderr.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs to the end and returns the summary's bytes.
pub fn finish(arguments: &[&str], directory: &Path) -> Vec<u8> {
    let output = run(arguments);
    let message = errors(&output);
    assert!(output.status.success(), "{arguments:?}: {message}");
    fs::read(directory.join("summary.json")).expect("a summary")
}

/// A directory for everything that a test writes.
pub struct Place {
    pub root: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            root: tempfile::tempdir().expect("a directory"),
        }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

/// All files of a directory with their contents.
pub fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<(PathBuf, Vec<u8>)> = paths
        .flat_map(|path| match path.is_dir() {
            true => snapshot(&path),
            false => {
                let bytes = fs::read(&path).expect("a file");
                vec![(path, bytes)]
            }
        })
        .collect();
    files.sort();
    files
}

/// The names of what is in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}

pub fn records(directory: &Path) -> Vec<u8> {
    fs::read(directory.join("metrics.jsonl")).unwrap_or_default()
}

/// The records that end with a newline.
pub fn complete_records(directory: &Path) -> Vec<u8> {
    let mut bytes = records(directory);
    let torn = bytes.iter().rev().take_while(|b| **b != b'\n').count();
    bytes.truncate(bytes.len() - torn);
    bytes
}

pub fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Until the records have a number of lines, or the process has ended.
pub fn wait_for(wanted: usize, directory: &Path, child: &mut Child) {
    wait_until(child, || lines(&records(directory)) >= wanted);
}

/// Until something is so, or the process has ended.
pub fn wait_until(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() && child.try_wait().expect("a status").is_none() {
        sleep(Duration::from_millis(1));
    }
}

/// Sends a signal, such as `TERM`.
#[cfg(unix)]
pub fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    // A process that has ended cannot be killed.
    let _ = sent.expect("kill is there");
}

/// Exit code 2, one line that says what was wrong, and no file touched.
pub fn refused(arguments: &[&str], hint: &str, root: &Path) {
    let before = snapshot(root);
    let output = run(arguments);
    let message = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(hint), "{arguments:?}: {message}");
    assert!(message.starts_with("straightflow: "), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    assert!(snapshot(root) == before, "{arguments:?} changed a file");
}

/// Exit code 1 and one sentence beside the progress, which is returned.
pub fn failed(output: &Output) -> String {
    let message = errors(output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let sentences = message.lines().filter(|l| l.starts_with("straightflow: "));
    let sentences: Vec<&str> = sentences.collect();
    assert_eq!(sentences.len(), 1, "one sentence is wanted: {message}");
    assert!(!message.contains("panicked"), "{message}");
    sentences[0].to_owned()
}

/// Pseudo-random moments: SplitMix64.
pub struct Moments(pub u64);

impl Moments {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A time before `end`.
    pub fn before(&mut self, end: Duration) -> Duration {
        end.mul_f64((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}
