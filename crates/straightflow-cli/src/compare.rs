//! `straightflow compare`: estimators side by side on one built-in cost.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use straightflow::Key;
use straightflow::compare::{Budget, Comparison, candidates, compare};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Spec, find};
use straightflow_experiments::arguments::{at_least_one, count, word};
use straightflow_experiments::lab::{FAMILIES, Objective, PROBLEMS, Problem, objectives};
use straightflow_experiments::runner::RunError;

pub const EXAMPLES: &str = "Examples:
  straightflow compare --family bernoulli --cost quad
  straightflow compare --family poisson --cost sigm --budget 16 --json
  straightflow compare --family categorical --estimators reinmax carms unordered-set
On your own model, call `straightflow::compare::compare`.";

/// Copies of a variable that are estimated in one call.
const COPIES: usize = 500;

#[derive(Args)]
pub struct Arguments {
    /// The family. The problems are those of `lab`.
    #[arg(long, value_name = "FAMILY", value_parser = word::<FamilyKind>(FAMILIES))]
    family: FamilyKind,
    /// The cost, by its id in `lab`, such as quad, sigm or step [default: all].
    #[arg(long, value_name = "COST")]
    cost: Option<String>,
    /// The budget of one estimate, in evaluations of the cost and backward passes through it.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one::<usize>)]
    budget: usize,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys
    /// [default: all that support the family].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Independent estimates per method.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = count::<usize>)]
    replicates: usize,
    /// The seed of all randomness.
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = count::<u64>)]
    seed: u64,
    /// Print an array of {variable, cost, comparison}.
    #[arg(long)]
    json: bool,
}

/// A comparison on a cost of a variable.
#[derive(Serialize)]
struct Named {
    variable: &'static str,
    cost: &'static str,
    #[serde(flatten)]
    comparison: Comparison,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(reason) = unsupported(arguments) {
        return Err(RunError::refused(std::io::Error::other(reason)).into());
    }
    let mut all = Vec::new();
    for (number, problem) in PROBLEMS.iter().enumerate() {
        if problem.kind() != arguments.family {
            continue;
        }
        for objective in objectives(problem) {
            let asked = arguments.cost.as_ref();
            if asked.is_none_or(|cost| cost == objective.id) {
                let key = Key::new(arguments.seed).child(number as u64);
                let named = one(arguments, key, problem, objective);
                let named = named.map_err(RunError::refused)?;
                if !arguments.json {
                    let title =
                        format!("{}, {} = {}", problem.label, named.cost, objective.formula);
                    writeln!(out, "{title}\n{}\n", named.comparison)?;
                }
                all.push(named);
            }
        }
    }
    if all.is_empty() {
        let error = std::io::Error::other(nothing(arguments));
        return Err(RunError::refused(error).into());
    }
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
    }
    if all.iter().all(|named| named.comparison.best.is_none()) {
        anyhow::bail!("none of the estimators works on these variables within the budget");
    }
    Ok(())
}

fn one(
    arguments: &Arguments,
    key: Key,
    problem: &Problem,
    objective: &Objective,
) -> straightflow::Result<Named> {
    let law = problem.law(1);
    let specs = match arguments.estimators.as_slice() {
        [] => candidates(&law, true),
        given => given.to_vec(),
    };
    let specs = specs.iter().map(Spec::to_string);
    let budget = Budget::evaluations(arguments.budget).with_replicates(arguments.replicates);
    let budget = budget.with_copies(COPIES);
    let cost = |z| objective.cost(problem, z);
    Ok(Named {
        variable: problem.id,
        cost: objective.id,
        comparison: compare(key, &law, cost, specs, budget)?,
    })
}

/// What the estimators support, if none of them supports the family.
fn unsupported(arguments: &Arguments) -> Option<String> {
    let family = arguments.family;
    let mut reasons = Vec::new();
    for spec in &arguments.estimators {
        // What is wrong with a specification is said elsewhere.
        let entry = find(spec.id()).ok()?;
        let supported = || entry.families.iter().chain(entry.also);
        if supported().any(|one| *one == family) {
            return None;
        }
        let names: Vec<String> = supported().map(FamilyKind::to_string).collect();
        reasons.push(format!("`{}` supports only {}", entry.id, names.join(", ")));
    }
    let reasons = (!reasons.is_empty()).then(|| reasons.join("; "));
    reasons
        .map(|reasons| format!("none of these estimators supports {family} variables: {reasons}"))
}

/// What there is, when nothing was found.
fn nothing(arguments: &Arguments) -> String {
    let of_family = PROBLEMS.iter().filter(|one| one.kind() == arguments.family);
    let mut costs: Vec<&str> = of_family
        .flat_map(|problem| objectives(problem).iter().map(|one| one.id))
        .collect();
    costs.sort_unstable();
    costs.dedup();
    let family = arguments.family;
    match costs.as_slice() {
        [] => format!("the laboratory has no {family} variable"),
        costs => format!(
            "there is no cost `{}` for {family} variables; choose from {}",
            arguments.cost.as_deref().unwrap_or_default(),
            costs.join(", ")
        ),
    }
}
