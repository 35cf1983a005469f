//! What a report opens with: the findings of a table, and its part of the table over all runs.

use straightflow_report::page::{Finding, Glance, GlanceCell, Label};

use super::recorded::{Recorded, beside, is_comparable, of_estimator, recorded};
use super::summary::{TableRow, in_paper, short};
use crate::vae::{Architecture, default_pwgf};

/// Looks for something in the rows of one architecture.
type Find = fn(&[TableRow]) -> Option<Finding>;

/// What the rows show about the methods that stand in them.
pub(super) fn findings(rows: &[TableRow]) -> Vec<Finding> {
    let archs = rows.chunk_by(|a, b| a.arch == b.arch && a.latent == b.latent);
    let each: [Find; 4] = [on_bits, on_counts, second_order, debiased];
    let own = archs.flat_map(|rows| each.iter().filter_map(|find| find(rows)));
    let own = short_runs(rows).into_iter().chain(own);
    own.chain(recorded_findings(rows)).collect()
}

/// Training shorter than this says little about how methods end.
const SHORT: u64 = 20;

/// That the rows are of the beginning of a training.
fn short_runs(rows: &[TableRow]) -> Option<Finding> {
    let longest = rows
        .iter()
        .filter(|row| is_comparable(row))
        .max_by_key(|row| row.epochs)?;
    let is_short = longest.epochs < SHORT;
    is_short.then(|| Finding {
        about: "the length of the runs",
        place: 0,
        weight: longest.epochs as f64,
        text: format!(
            "This is a short run: its autoencoders were trained for {}, whereas the protocol that we take the paper to \
             follow has 400 or more. Conclusions about them rest on the longer runs that are recorded in the \
             repository.",
            epochs(longest)
        ),
    })
}

/// What the records of the repository show, where the rows are comparable with them. Any finding of the
/// rows themselves counts for more.
fn recorded_findings(rows: &[TableRow]) -> Vec<Finding> {
    let one = |spec: &str| {
        let mut records = recorded().iter();
        records.find(|one| one.arch == "linear" && one.estimator == spec)
    };
    let finding = |about, place, text| Finding {
        about,
        place,
        weight: 0.0,
        text,
    };
    let at = |one: &Recorded| {
        let (nats, seeds) = (one.test_nelbo, seeds(one.seeds));
        format!("{nats:.2} nats ({seeds}; results/{})", one.run)
    };
    let mut found = Vec::new();
    if !rows.iter().any(is_comparable) {
        return found;
    }
    if let (Some(plain), Some(second)) = (one("straight-through"), one("second-order-st"))
        && plain.epochs == second.epochs
        && second.test_nelbo < plain.test_nelbo
    {
        let text = format!(
            "A second-order version of the paper's projection costs no more per step than straight-through and gets \
             further: in recorded runs of {} epochs (linear) it is at {}, and straight-through at {}.",
            plain.epochs,
            at(second),
            at(plain)
        );
        found.push(finding("second order", 4, text));
    }
    if let (Some(own), Some(disarm)) = (one("debiased-st"), one("disarm"))
        && own.epochs == disarm.epochs
    {
        let text = format!(
            "Made unbiased, straight-through keeps up with the best unbiased methods: in recorded runs of {} epochs \
             (linear) debiased straight-through is at {}, and DisARM at {}.",
            own.epochs,
            at(own),
            at(disarm)
        );
        found.push(finding("debiased", 5, text));
    }
    found
}

fn row<'a>(rows: &'a [TableRow], latent: &str, spec: &str) -> Option<&'a TableRow> {
    let mut rows = rows.iter();
    rows.find(|row| row.latent == latent && row.estimator == spec)
}

fn finding(place: usize, about: &'static str, row: &TableRow, text: String) -> Option<Finding> {
    let weight = row.epochs as f64 * row.seeds as f64;
    Some(Finding {
        about,
        place,
        weight,
        text,
    })
}

fn epochs(row: &TableRow) -> String {
    match row.epochs {
        1 => "1 epoch".to_owned(),
        epochs => format!("{epochs} epochs"),
    }
}

/// The paper's pWGF with a small step.
const SMALL_STEP: &str = "pwgf:preset=paper,step=fixed(0.01)";

fn on_bits(rows: &[TableRow]) -> Option<Finding> {
    let plain = row(rows, "bernoulli", "straight-through")?;
    let small = row(rows, "bernoulli", "pwgf")?;
    let large = row(rows, "bernoulli", "pwgf:preset=paper")?;
    if small.test_nelbo != plain.test_nelbo {
        return None;
    }
    let mut records = recorded().iter().filter(|one| one.arch == plain.arch);
    let small_step = records.find(|one| one.estimator == SMALL_STEP);
    let small_step = small_step.map(|one| {
        let (nats, epochs) = (one.test_nelbo, one.epochs);
        format!("; with ε = 0.01 a recorded run of {epochs} epochs ends at {nats:.2}")
    });
    let small_step = small_step.unwrap_or_default();
    let longer = beside(large).and_then(|one| {
        let (nats, epochs) = (one.test_nelbo, one.epochs);
        let paper = one.paper?;
        Some(format!(
            ", and at {nats:.2} after {epochs} epochs of a recorded run, where the paper has {paper}{small_step}"
        ))
    });
    let longer = longer.unwrap_or_default();
    finding(
        2,
        "pWGF on bits",
        plain,
        format!(
            "On bits, pWGF in the limit of a small step size ε, rescaled to the gradient length of straight-through (our \
             default), is straight-through: both are at {:.2} nats after {} ({}). With ε = 1 and no rescaling it is \
             at {:.2}{longer}. The paper does not state ε.",
            plain.test_nelbo,
            epochs(plain),
            plain.arch,
            large.test_nelbo
        ),
    )
}

fn on_counts(rows: &[TableRow]) -> Option<Finding> {
    let own = row(rows, "poisson", "pwgf")?;
    let best = rows
        .iter()
        .min_by(|a, b| a.test_nelbo.total_cmp(&b.test_nelbo))?;
    if best.estimator == own.estimator {
        return None;
    }
    finding(
        3,
        "pWGF on counts",
        own,
        format!(
            "On counts pWGF is behind: it is at {:.2} nats after {}, and {} at {:.2} ({}).",
            own.test_nelbo,
            epochs(own),
            best.label.to_lowercase(),
            best.test_nelbo,
            own.arch
        ),
    )
}

fn second_order(rows: &[TableRow]) -> Option<Finding> {
    let plain = row(rows, "bernoulli", "straight-through")?;
    let second = row(rows, "bernoulli", "second-order-st")?;
    if second.test_nelbo >= plain.test_nelbo || second.evaluations > plain.evaluations {
        return None;
    }
    finding(
        4,
        "second order",
        plain,
        format!(
            "A second-order version of the paper's projection costs no more per step than straight-through and gets \
             further: {:.2} nats against {:.2} after {} ({}).",
            second.test_nelbo,
            plain.test_nelbo,
            epochs(plain),
            plain.arch
        ),
    )
}

fn debiased(rows: &[TableRow]) -> Option<Finding> {
    /// Unbiased ones that it is compared with.
    const OTHERS: [&str; 3] = ["arms", "disarm", "arm"];
    let own = row(rows, "bernoulli", "debiased-st")?;
    let others = OTHERS
        .iter()
        .filter_map(|spec| row(rows, "bernoulli", spec));
    let others: Vec<&TableRow> = others.collect();
    if others.is_empty()
        || others
            .iter()
            .any(|other| other.test_nelbo <= own.test_nelbo)
    {
        return None;
    }
    // What it is compared with is worth more than how long.
    let weight = others.len() as f64 * 1e6 + own.epochs as f64;
    let disarm = row(rows, "bernoulli", "disarm");
    let mut text = match disarm.and_then(|disarm| course(own, disarm)) {
        Some(course) => course + &ends(&others, "disarm", ", with ", " at ") + ".",
        None => {
            let best = others.iter().map(|other| other.test_nelbo);
            let margin = best.fold(f64::INFINITY, f64::min) - own.test_nelbo;
            let verdict = match margin < LEVEL {
                true => "keeps up with the other unbiased methods",
                false => "is ahead of the other unbiased methods",
            };
            format!(
                "Made unbiased, straight-through {verdict}: after {} ({}) debiased straight-through is at {:.2} \
                 nats{}.",
                epochs(own),
                own.arch,
                own.test_nelbo,
                ends(&others, "", ", ", " ")
            )
        }
    };
    if let (Some(own), Some(disarm)) = (beside(own), disarm.and_then(beside))
        && own.epochs == disarm.epochs
    {
        text += &format!(
            " After {} epochs it is at {:.2} ({}), DisARM at {:.2} ({}).",
            own.epochs,
            own.test_nelbo,
            seeds(own.seeds),
            disarm.test_nelbo,
            seeds(disarm.seeds)
        );
    }
    Some(Finding {
        about: "debiased",
        place: 5,
        weight,
        text,
    })
}

/// Test values in nats that differ by less are level.
const LEVEL: f64 = 0.5;

/// How the debiased method and DisARM learn: which is ahead after some of the epochs, and which at the end. None if
/// the debiased one is not ahead early on.
fn course(own: &TableRow, disarm: &TableRow) -> Option<String> {
    const EARLY: u64 = 100;
    let at = |row: &TableRow| {
        let mut curve = row.curve.iter().take_while(|one| one.epoch < row.epochs);
        let early = curve.find(|one| one.epoch == EARLY);
        early.map(|one| one.test_nelbo)
    };
    let (own_early, disarm_early) = (at(own)?, at(disarm)?);
    if own_early + LEVEL > disarm_early || own.epochs != disarm.epochs {
        return None;
    }
    let is_level = (own.test_nelbo - disarm.test_nelbo).abs() < LEVEL;
    let (faster, end) = match is_level {
        true => ("learns faster at first", "they are level"),
        false if own.test_nelbo < disarm.test_nelbo => ("learns faster", "it is still ahead"),
        false => ("learns faster at first", "it is behind"),
    };
    let joined = if is_level { "and" } else { "against" };
    Some(format!(
        "Made unbiased, straight-through {faster}: {own_early:.2} nats against DisARM's {disarm_early:.2} after {EARLY} \
         epochs ({}); after {} {end}, at {:.2} {joined} {:.2}",
        own.arch, own.epochs, own.test_nelbo, disarm.test_nelbo
    ))
}

/// Where methods end, but for one of them.
fn ends(rows: &[&TableRow], but: &str, before: &str, between: &str) -> String {
    let rows = rows.iter().filter(|row| row.estimator != but);
    rows.map(|row| format!("{before}{}{between}{:.2}", row.label, row.test_nelbo))
        .collect()
}

/// The paper's number beside a row, also beside pWGF with another step.
pub(super) fn paper(row: &TableRow) -> Option<f64> {
    let comparable = is_comparable(row) && row.protocol == "threshold";
    // The paper's configuration has its number already, unless the run is not comparable.
    let of_pwgf =
        comparable && row.estimator.starts_with(PAPER_PWGF) && row.estimator != PAPER_PWGF;
    row.paper.or_else(|| {
        let found = of_pwgf.then(|| published(&row.estimator, &row.arch));
        found.flatten()
    })
}

/// The paper's pWGF; the paper does not state its step.
const PAPER_PWGF: &str = "pwgf:preset=paper";

/// The paper's number of an estimator, also of pWGF with another step.
fn published(estimator: &str, arch: &str) -> Option<f64> {
    let of_pwgf = estimator.starts_with(PAPER_PWGF);
    let numbers = in_paper(if of_pwgf { PAPER_PWGF } else { estimator })?;
    let place = Architecture::ALL
        .iter()
        .position(|one| one.name() == arch)?;
    numbers.get(place).copied().flatten()
}

fn seeds(count: usize) -> String {
    match count {
        1 => "one seed".to_owned(),
        2 => "two seeds".to_owned(),
        3 => "three seeds".to_owned(),
        count => format!("{count} seeds"),
    }
}

/// Methods that were not run are shown if their recorded runs have at least this many epochs.
const LONG: u64 = 100;

/// The rows of the paper's kind, each beside the longest one that is recorded.
pub(super) fn glance(rows: &[TableRow]) -> Option<Glance> {
    // Variants of a method have tables of their own; the paper's pWGF is shown with each step.
    let is_shown = |row: &&TableRow| {
        let of_paper = row.paper.is_some() || row.estimator.starts_with(PAPER_PWGF);
        let is_plain = !row.estimator.contains(':');
        // On bits the default pWGF is straight-through, which has a row of its own.
        of_paper || is_plain && !default_pwgf(&row.estimator, &row.latent)
    };
    let bits = || {
        rows.iter()
            .filter(|row| row.latent == "bernoulli")
            .filter(is_shown)
    };
    let own = bits().map(|row| GlanceCell {
        row: Label::new(short(&row.label), &row.estimator),
        column: row.arch.clone(),
        value: Some(row.test_nelbo),
        epochs: row.epochs,
        seeds: row.seeds,
        paper: paper(row),
    });
    let cell = |one: &Recorded| GlanceCell {
        row: Label::new(short(&one.label), &one.estimator),
        column: one.arch.clone(),
        value: Some(one.test_nelbo),
        epochs: one.epochs,
        seeds: one.seeds,
        paper: one.paper.or_else(|| published(&one.estimator, &one.arch)),
    };
    // What the paper has and we have not run.
    let missing = bits().flat_map(|row| {
        let cell = |arch: &Architecture| {
            Some(GlanceCell {
                row: Label::new(short(&row.label), &row.estimator),
                column: arch.name().to_owned(),
                value: None,
                epochs: 0,
                seeds: 0,
                paper: Some(published(&row.estimator, arch.name())?),
            })
        };
        Architecture::ALL.iter().filter_map(cell)
    });
    let mut cells: Vec<GlanceCell> = own.collect();
    cells.extend(bits().flat_map(of_estimator).map(cell));
    cells.extend(missing);
    if bits().any(is_comparable) {
        let long = recorded().iter().filter(|one| one.epochs >= LONG);
        let plain = |one: &&Recorded| !one.estimator.contains(':') && one.estimator != "pwgf";
        let in_paper = |one: &&Recorded| published(&one.estimator, &one.arch).is_some();
        let shown = long.filter(|one| plain(one) || in_paper(one));
        cells.extend(shown.map(cell));
    }
    (!cells.is_empty()).then(|| Glance {
        caption: "Table 2 at a glance: test negative ELBO in nats, lower is better".to_owned(),
        look: "For each entry the longest run we have, from this report or from the repository's records, beside \
               the paper's number. Mind the epochs when you compare: the full protocol has 400, or 1500 for two \
               layers. “400 × 3” means 400 epochs, averaged over three seeds; entries without “×” are single runs. \
               The paper's numbers for RELAX, REBAR and Gumbel-softmax may be for greyscale images, ours are for \
               binary ones. “ARM (preset=paper)” trains the decoder on one of its two draws; “pWGF (preset=paper)” moves samples \
               by ε = 1, and with “step=fixed(0.01)” by ε = 0.01."
            .to_owned(),
        cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_numbers_are_there_without_a_run_of_ours() {
        let of = |estimator| {
            [
                published(estimator, "linear"),
                published(estimator, "two-layer"),
            ]
        };
        assert_eq!(of("rebar"), [Some(123.2), Some(113.7)]);
        assert_eq!(of("gumbel-softmax"), [Some(129.2), None]);
        assert_eq!(
            of("pwgf:preset=paper,step=fixed(0.01)"),
            [Some(119.8), Some(108.3)]
        );
        assert_eq!(of("pwgf"), [None, None]);
        assert_eq!(published("rebar", "four-layer"), None);
    }
}
