//! The cells of a run as tasks of their own: the results are those of a local run, whatever happens to the
//! tasks.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Place, errors, failed, finish, refused, run, signal, straightflow, text, wait_until};
use straightflow_experiments::EXPERIMENTS;

/// A training of some seconds with a checkpoint after each epoch.
const LONG: &str = "vae --images 200 --bound-samples 2 --epochs 150";
/// A run of at least some signs of life.
const LONGER: &str = "vae --images 200 --bound-samples 2 --epochs 400";

fn words<'a>(settings: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    settings.split(' ').chain(more.iter().copied()).collect()
}

/// Submits a grid as a script, with a lease of two seconds.
fn submit(settings: &str, directory: &Path) {
    submit_for(settings, directory, "2");
}

fn submit_for(settings: &str, directory: &Path, seconds: &str) {
    let grid = [
        "--out",
        text(directory),
        "--submit",
        "script",
        "--lease",
        seconds,
    ];
    let output = run(&words(settings, &grid));
    assert!(output.status.success(), "{}", errors(&output));
}

fn local(settings: &str, directory: &Path) -> Vec<u8> {
    finish(&words(settings, &["--out", text(directory)]), directory)
}

fn cell(directory: &Path, number: usize) -> Command {
    straightflow(&["cell", text(directory), &number.to_string()])
}

fn gather(directory: &Path) -> Vec<u8> {
    finish(&["gather", text(directory)], directory)
}

fn status(directory: &Path) -> serde_json::Value {
    let output = run(&["status", text(directory), "--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The state of the first cell, and its attempts.
fn first(directory: &Path) -> (String, u64) {
    let status = status(directory);
    let cell = &status["cells"][0];
    let state = cell["state"].as_str().expect("a word");
    (
        state.to_owned(),
        cell["attempts"].as_u64().expect("a number"),
    )
}

fn attempt(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("grid/0/{number}"))
}

fn wait_for_checkpoint(child: &mut Child, attempt: &Path) {
    let (ready, checkpoint) = (attempt.join("ready"), attempt.join("run/checkpoint.bin"));
    wait_until(child, || ready.exists() && checkpoint.exists());
    let ended = child.try_wait().expect("a status");
    assert!(ended.is_none(), "it ended before it had a checkpoint");
}

/// The files of results, records sorted: where cells run at once, they come in any order.
fn results(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = common::names(directory).into_iter();
    let wanted = |name: &String| {
        let ends = [
            ".svg",
            ".png",
            "config.toml",
            "summary.json",
            "metrics.jsonl",
        ];
        ends.iter().any(|end| name.ends_with(end))
    };
    names
        .filter(wanted)
        .map(|name| {
            let mut bytes = fs::read(directory.join(&name)).expect("a file");
            if name == "metrics.jsonl" {
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                lines.sort_unstable();
                bytes = lines.join(&b'\n');
            }
            (name, bytes)
        })
        .collect()
}

/// The names of cells that are runs of their own, in the order of the cells.
fn nested(directory: &Path) -> Vec<String> {
    let status = status(directory);
    let cells = status["cells"].as_array().expect("cells").iter();
    let names = cells.map(|cell| cell["name"].as_str().expect("a name").to_owned());
    names
        .filter(|name| directory.join("cells").join(name).exists())
        .collect()
}

#[test]
fn every_experiment_is_the_same_as_a_grid() {
    for entry in EXPERIMENTS {
        let place = Place::new();
        let (here, grid) = (place.at("here"), place.at("grid"));
        let settings = format!("{} {}", entry.id, entry.small);
        local(&settings, &here);
        submit(&settings, &grid);
        let count = status(&grid)["cells"].as_array().expect("cells").len();
        // From the last to the first, and the last one through the script.
        for number in (0..count).rev() {
            let output = match number + 1 == count {
                true => Command::new("bash")
                    .arg(grid.join("grid.sbatch"))
                    .arg(number.to_string())
                    .output(),
                false => cell(&grid, number).output(),
            };
            let output = output.expect("it runs");
            assert!(output.status.success(), "{}: {}", entry.id, errors(&output));
        }
        gather(&grid);
        for (ours, theirs) in results(&here).iter().zip(results(&grid)) {
            assert_eq!(ours.0, theirs.0, "{}", entry.id);
            assert!(ours.1 == theirs.1, "{}: {} differs", entry.id, ours.0);
        }
        assert_eq!(results(&here).len(), results(&grid).len(), "{}", entry.id);
        // Nothing was trained again: the notes about time are those of the tasks.
        for (number, cell) in nested(&grid).iter().enumerate() {
            let task = attempt_of(&grid, number, &format!("run/cells/{cell}/timing.json"));
            let gathered = grid.join(format!("cells/{cell}/timing.json"));
            let read = |path: &Path| fs::read(path).expect("a file");
            assert!(read(&task) == read(&gathered), "{cell} was trained again");
        }
        let machines = fs::read(grid.join("machines.json")).expect("a file");
        let machines: serde_json::Value = serde_json::from_slice(&machines).expect("JSON");
        assert_eq!(machines.as_array().map(Vec::len), Some(count));
        assert!(machines[0]["worker"]["cpu"].is_string());
        // The same command once more finds nothing to do.
        let before = fs::read(grid.join("summary.json")).expect("a summary");
        assert!(local(&settings, &grid) == before, "{}", entry.id);
    }
}

#[test]
fn the_command_without_submit_collects_and_runs_the_rest() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let settings = "poisson --seeds 6 --block 2 --epochs 20 --estimators pwgf muprop";
    let expected = local(settings, &here);
    submit(settings, &grid);
    for number in [3, 1] {
        let output = cell(&grid, number).output().expect("it runs");
        assert!(output.status.success(), "{}", errors(&output));
    }
    let message = failed(&run(&["gather", text(&grid)]));
    assert!(
        message.contains("cells are not done (2 done, "),
        "{message}"
    );
    let output = run(&words(settings, &["--out", text(&grid)]));
    let message = errors(&output);
    assert!(
        message.contains("going on after 2 recorded cells"),
        "{message}"
    );
    assert!(fs::read(grid.join("summary.json")).expect("a summary") == expected);
}

#[test]
fn a_run_that_was_begun_here_goes_on_as_a_grid() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let expected = local(LONG, &here);
    let mut child = straightflow(&words(LONG, &["--out", text(&grid)]))
        .spawn()
        .expect("it runs");
    wait_until(&mut child, || grid.join("checkpoint.bin").exists());
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    let begun = common::lines(&common::records(&grid));
    submit(LONG, &grid);
    assert!(cell(&grid, 0).status().expect("it runs").success());
    let all = common::records(&attempt(&grid, 1).join("run"));
    assert!(all.starts_with(&common::records(&grid)) && begun > 0);
    assert!(gather(&grid) == expected);
}

/// The cells of the shorter run must not stand for those of the longer one.
#[test]
fn a_gathered_run_grows() {
    for (short, long) in [
        (
            "vae --images 100 --bound-samples 2 --epochs 2",
            "--epochs 4",
        ),
        (
            "table2 --images 100 --bound-samples 2 --arch linear --estimators arm --epochs 2",
            "--epochs 4",
        ),
    ] {
        let place = Place::new();
        let (here, grid) = (place.at("here"), place.at("grid"));
        let expected = local(&short.replace("--epochs 2", long), &here);
        submit(short, &grid);
        assert!(cell(&grid, 0).status().expect("it runs").success());
        assert!(gather(&grid) != expected);
        let id = short.split(' ').next().expect("a word");
        let grown = ["--out", text(&grid), "--resume", "--epochs", "4"];
        assert!(finish(&words(id, &grown), &grid) == expected, "{id}");
        let hint = "has a grid of other settings";
        refused(&["cell", text(&grid), "0"], hint, place.root.path());
        let again = [&grown[..], &["--submit", "script"]].concat();
        refused(&words(id, &again), hint, place.root.path());
    }
}

#[test]
fn a_cell_that_somebody_works_on_is_refused() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let expected = local(LONGER, &here);
    // A sign of life is due every second. On a busy machine it may be late, but not as late as this.
    submit_for(LONGER, &grid, "6");
    let mut owner = cell(&grid, 0).spawn().expect("it runs");
    wait_for_checkpoint(&mut owner, &attempt(&grid, 1));
    assert_eq!(first(&grid), ("running".to_owned(), 1));
    let second = cell(&grid, 0).output().expect("it runs");
    let message = errors(&second);
    assert_eq!(second.status.code(), Some(75), "{message}");
    let hint = format!("cell 0 is being run by process {}", owner.id());
    assert!(message.contains(&hint), "{message}");
    let owner = owner.wait_with_output().expect("it ends");
    assert!(owner.status.success(), "{}", errors(&owner));
    assert_eq!(first(&grid), ("done".to_owned(), 1));
    let third = cell(&grid, 0).output().expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&third.stdout),
        "cell 0 was done before\n"
    );
    assert!(gather(&grid) == expected);
}

#[test]
fn a_task_that_was_declared_dead_and_is_not_steps_back() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let expected = local(LONG, &here);
    submit(LONG, &grid);
    let mut frozen = cell(&grid, 0).spawn().expect("it runs");
    wait_for_checkpoint(&mut frozen, &attempt(&grid, 1));
    signal(&frozen, "STOP");
    let mut heir = cell(&grid, 0).spawn().expect("it runs");
    wait_for_checkpoint(&mut heir, &attempt(&grid, 2));
    // Both run now, and both write.
    signal(&frozen, "CONT");
    let frozen = frozen.wait_with_output().expect("it ends");
    let message = failed(&frozen);
    assert!(
        message.contains("cell 0 was taken over by another process"),
        "{message}"
    );
    let heir = heir.wait_with_output().expect("it ends");
    assert!(heir.status.success(), "{}", errors(&heir));
    let end = fs::read_to_string(attempt(&grid, 1).join("end.json")).expect("an end");
    assert!(end.contains("\"stepped-back\""), "{end}");
    let done = fs::read_to_string(grid.join("grid/0/done.json")).expect("the one that counts");
    assert!(done.contains("\"attempt\": 2"), "{done}");
    assert!(gather(&grid) == expected);
}

/// As preemption and time limits do it: the script is signalled, and so may be the process.
#[test]
fn sigterm_keeps_a_checkpoint_and_asks_for_another_try() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let expected = local(LONG, &here);
    submit(LONG, &grid);
    let script = Command::new("bash")
        .arg(grid.join("grid.sbatch"))
        .arg("0")
        .env_remove("SLURM_JOB_ID")
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut script = script.expect("it runs");
    wait_for_checkpoint(&mut script, &attempt(&grid, 1));
    let lease = fs::read(attempt(&grid, 1).join("lease.json")).expect("a lease");
    let lease: serde_json::Value = serde_json::from_slice(&lease).expect("JSON");
    let process = lease["worker"]["process"].to_string();
    signal(&script, "TERM");
    let _ = Command::new("kill").args(["-s", "TERM", &process]).status();
    let output = script.wait_with_output().expect("it ends");
    let message = errors(&output);
    assert_eq!(output.status.code(), Some(75), "{message}");
    assert!(message.contains("interrupted by SIGTERM"), "{message}");
    assert_eq!(first(&grid), ("stopped".to_owned(), 1));
    let kept = common::records(&attempt(&grid, 1).join("run"));
    assert!(cell(&grid, 0).status().expect("it runs").success());
    // It went on where the first one stopped.
    let all = common::records(&attempt(&grid, 2).join("run"));
    assert!(common::lines(&kept) > 0 && all.starts_with(&kept));
    assert_eq!(first(&grid), ("done".to_owned(), 2));
    assert!(gather(&grid) == expected);
}

#[test]
fn failed_cells_are_listed_and_submitted_alone() {
    let place = Place::new();
    let (here, grid) = (place.at("here"), place.at("grid"));
    let settings = "table2 --images 100 --bound-samples 2 --epochs 3 --arch linear --estimators arm rebar disarm";
    let expected = local(settings, &here);
    submit(settings, &grid);
    let bad = grid.join("cells/linear-rebar-1");
    fs::create_dir_all(&bad).expect("made");
    let config = here.join("cells/linear-rebar-1/config.toml");
    fs::copy(config, bad.join("config.toml")).expect("copied");
    fs::write(bad.join("checkpoint.bin"), "no checkpoint").expect("written");
    for (number, code) in [(0, 0), (1, 1), (2, 0)] {
        let output = cell(&grid, number).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
    }
    let shown = run(&["status", text(&grid)]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("table2, 3 cells: 2 done, 1 failed"),
        "{shown}"
    );
    assert!(shown.contains("checkpoint.bin cannot be used"), "{shown}");
    assert!(shown.contains("--submit slurm --cells failed"), "{shown}");
    // The others have their results, as in a local run.
    let message = failed(&run(&["gather", text(&grid)]));
    assert!(message.contains("linear-rebar-1 failed: "), "{message}");
    let again = [
        "--out",
        text(&grid),
        "--submit",
        "script",
        "--cells",
        "failed",
    ];
    assert!(run(&words(settings, &again)).status.success());
    let script = fs::read_to_string(grid.join("grid.sbatch")).expect("a script");
    assert!(script.contains("#SBATCH --array=1\n"), "{script}");
    // What was wrong is put right.
    for from in [bad, attempt_of(&grid, 1, "run/cells/linear-rebar-1")] {
        fs::remove_file(from.join("checkpoint.bin")).expect("removed");
    }
    assert!(cell(&grid, 1).status().expect("it runs").success());
    assert!(gather(&grid) == expected);
    refused(
        &words(settings, &again),
        "none has failed",
        place.root.path(),
    );
}

fn attempt_of(directory: &Path, cell: usize, below: &str) -> PathBuf {
    directory.join(format!("grid/{cell}/1/{below}"))
}

#[test]
fn bad_input_is_refused_in_one_sentence() {
    let place = Place::new();
    let grid = place.at("grid");
    let settings =
        "toy --estimators arm --seeds 2 --steps 10 --variance-steps 2 --variance-replicates 20";
    submit(settings, &grid);
    let (root, directory) = (place.root.path(), text(&grid));
    let nowhere = place.at("nowhere");
    for command in ["status", "gather"] {
        refused(&[command, text(&nowhere)], "there is no directory", root);
    }
    refused(
        &["cell", text(&nowhere), "0"],
        "there is no directory",
        root,
    );
    refused(
        &["cell", directory, "7"],
        "there is no cell 7: the grid has 1",
        root,
    );
    let cells = ["--out", directory, "--submit", "script", "--cells", "3"];
    refused(&words(settings, &cells), "there is no cell 3", root);
    let other = ["--out", directory, "--submit", "script", "--p0", "0.4"];
    refused(&words(settings, &other), "holds a different run", root);
    // Without Slurm the script is there all the same.
    let output = straightflow(&words(settings, &["--out", directory, "--submit", "slurm"]))
        .env("PATH", "")
        .output()
        .expect("it runs");
    let message = failed(&output);
    assert!(message.contains("sbatch was not found"), "{message}");
    for bad in [
        &["--submit", "slurm"][..],
        &["--out", directory, "--submit", "pbs"],
        &["--out", directory, "--submit", "script", "--cells", "some"],
        &["--out", directory, "--partition", "long"],
    ] {
        assert_eq!(run(&words(settings, bad)).status.code(), Some(2), "{bad:?}");
    }
    fs::write(grid.join("cells.json"), "{").expect("written");
    refused(&["status", directory], "is not a file of a grid", root);
}
