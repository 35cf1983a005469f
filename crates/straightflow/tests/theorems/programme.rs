//! Optimal transport as a linear programme.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolutionStatus, SolveOutcome};

/// The smallest `sum_ij g_ij cost(i, j)` over couplings of two weight vectors.
pub fn transport(p: &[f64], q: &[f64], cost: impl Fn(usize, usize) -> f64) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let plan: Vec<Vec<_>> = (0..p.len())
        .map(|i| {
            (0..q.len())
                .map(|j| problem.add_var(cost(i, j), (0.0, f64::INFINITY)))
                .collect()
        })
        .collect();
    for (i, p) in p.iter().enumerate() {
        let row = plan[i].iter().map(|&entry| (entry, 1.0));
        problem.add_constraint(row.collect::<Vec<_>>(), ComparisonOp::Eq, *p);
    }
    // The last column follows from the others; leaving it out keeps the programme feasible in
    // spite of rounding.
    for (j, q) in q.iter().enumerate().take(q.len() - 1) {
        let column = plan.iter().map(|row| (row[j], 1.0));
        problem.add_constraint(column.collect::<Vec<_>>(), ComparisonOp::Eq, *q);
    }
    match problem.solve() {
        Ok(SolveOutcome::Solution(solution)) => {
            assert_eq!(solution.status(), SolutionStatus::Optimal);
            solution.objective()
        }
        outcome => panic!("a transport problem with equal masses has a solution: {outcome:?}"),
    }
}

/// `W2^2` of laws on the line.
pub fn transport_on_line(x: &[f64], p: &[f64], y: &[f64], q: &[f64]) -> f64 {
    transport(p, q, |i, j| (x[i] - y[j]) * (x[i] - y[j]))
}
