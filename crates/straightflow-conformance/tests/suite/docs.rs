//! `docs/conformance.md` says what the code does.

use straightflow_conformance::check::CHECKS;
use straightflow_conformance::check::statistical::{CRITICAL, FALSE_ALARM, TESTS};
use straightflow_conformance::mutants::mutants;

const PAGE: &str = include_str!("../../../../docs/conformance.md");

/// The rows below a table's head, up to the first line that is none.
fn rows(head: &str) -> Vec<&'static str> {
    let (_, table) = PAGE.split_once(head).expect("a table with that head");
    let rows = table.lines().skip(2);
    rows.take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn the_page_lists_the_mutants_and_their_checks() {
    let want: Vec<String> = mutants()
        .iter()
        .map(|mutant| {
            let (name, wrong, check) = (mutant.name, mutant.wrong, mutant.rejected_by);
            format!("| `{name}` | {wrong} | `{check}` |")
        })
        .collect();
    let got = rows("| mutant | what is wrong | rejected by |");
    assert_eq!(got, want, "the table should be\n{}", want.join("\n"));
}

#[test]
fn the_page_lists_the_checks_in_their_order() {
    let names: Vec<String> = rows("| check | what it asserts |")
        .iter()
        .map(|row| {
            row.split('`')
                .nth(1)
                .expect("a name in back quotes")
                .to_owned()
        })
        .collect();
    let want: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names, want);
}

#[test]
fn the_page_states_the_false_alarm_rate() {
    assert!(PAGE.contains(&format!("critical value of {CRITICAL} standard errors")));
    assert!(PAGE.contains(&format!("rejected anywhere {FALSE_ALARM:e}")));
    let thousands = TESTS as u64 / 1000;
    assert!(PAGE.contains(&format!("At most {thousands},000 such tests")));
}
