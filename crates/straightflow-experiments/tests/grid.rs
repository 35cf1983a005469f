//! Claims of cells: of all processes that try, one has the cell, and one result counts.

use std::path::Path;
use std::time::Duration;

use straightflow_experiments::grid::{Claim, GridError, How, claim};

/// Ten times as long as a renewal takes on a busy machine.
const LEASE: Duration = Duration::from_millis(600);

fn take(place: &Path) -> Claim {
    let claimed = claim(place, 3, LEASE, &|| false);
    claimed.expect("nobody is alive").expect("it is not done")
}

#[test]
fn a_lease_that_is_renewed_keeps_others_away() {
    let place = tempfile::tempdir().expect("a directory");
    let mut owner = take(place.path());
    let refused = std::thread::scope(|scope| {
        let other = scope.spawn(|| claim(place.path(), 3, LEASE, &|| false));
        while !other.is_finished() {
            std::thread::sleep(LEASE / 30);
            owner.renew(0.5).expect("renewed");
        }
        other.join().expect("no panic")
    });
    let error = refused.expect_err("the owner is alive");
    assert!(
        matches!(error, GridError::Busy { cell: 3, process, .. } if process == std::process::id())
    );
    assert!(error.is_temporary());
    assert!(!owner.is_lost().expect("known"));
    assert!(owner.complete().expect("written"));
    let later = claim(place.path(), 3, LEASE, &|| false).expect("no error");
    assert!(later.is_none(), "the cell is done");
}

#[test]
fn a_cell_that_is_completed_while_it_is_watched_is_done() {
    let place = tempfile::tempdir().expect("a directory");
    let owner = take(place.path());
    let hours = Duration::from_secs(7200);
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| claim(place.path(), 3, hours, &|| false));
        // Longer than it takes to begin watching; if not, the cell is done even before.
        std::thread::sleep(LEASE / 2);
        assert!(owner.complete().expect("written"));
        other.join().expect("no panic")
    });
    assert!(found.expect("no error").is_none(), "it was begun once more");
    assert!(!place.path().join("2").exists());
}

#[test]
fn the_first_result_counts_whoever_has_it() {
    for old_is_first in [true, false] {
        let place = tempfile::tempdir().expect("a directory");
        let (old, new) = (take(place.path()), take(place.path()));
        assert_eq!((old.attempt(), new.attempt()), (1, 2));
        assert_ne!(old.run(), new.run());
        assert!(old.is_lost().expect("known") && !new.is_lost().expect("known"));
        let (first, second) = match old_is_first {
            true => (old, new),
            false => (new, old),
        };
        let attempt = first.attempt();
        assert!(first.complete().expect("written"));
        assert!(second.is_lost().expect("known"));
        assert!(!second.complete().expect("written"), "two results");
        let done = std::fs::read_to_string(place.path().join("done.json")).expect("a file");
        assert!(done.contains(&format!("\"attempt\": {attempt}")), "{done}");
    }
}

#[test]
fn an_attempt_that_ended_is_not_waited_for() {
    let place = tempfile::tempdir().expect("a directory");
    for how in [How::Failed, How::Stopped, How::SteppedBack] {
        take(place.path()).give_up(how, None).expect("written");
    }
    let hours = Duration::from_secs(7200);
    let next = claim(place.path(), 3, hours, &|| false).expect("no error");
    assert_eq!(next.expect("not done").attempt(), 4);
    // A process that waits can be stopped.
    let stopped = claim(place.path(), 3, hours, &|| true);
    assert!(matches!(stopped, Err(GridError::Stopped)));
}

/// Many processes at once: every attempt has one owner.
#[test]
fn no_attempt_has_two_owners() {
    let place = tempfile::tempdir().expect("a directory");
    let attempts: Vec<u32> = std::thread::scope(|scope| {
        let race = || claim(place.path(), 3, Duration::ZERO, &|| false);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(race)).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        let claims = results.map(|result| match result {
            Ok(claim) => claim.map(|claim| claim.attempt()),
            Err(GridError::Busy { .. }) => None,
            Err(error) => panic!("{error}"),
        });
        claims.flatten().collect()
    });
    let mut unique = attempts.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), attempts.len(), "{attempts:?}");
    assert!(!attempts.is_empty());
}

#[test]
fn a_cell_that_panics_has_failed() {
    let place = tempfile::tempdir().expect("a directory");
    let claimed = take(place.path());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _claimed = claimed;
        panic!("an index out of bounds, say");
    }));
    assert!(panicked.is_err());
    let end = std::fs::read_to_string(place.path().join("1/end.json")).expect("an end");
    assert!(
        end.contains("\"failed\"") && end.contains("it panicked"),
        "{end}"
    );
}
