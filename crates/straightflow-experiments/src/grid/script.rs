//! The script of the array of tasks.

use std::path::Path;

use crate::runner::quoted;

/// The exit code of a cell that is to be tried again: it was stopped after a checkpoint, or another process
/// works on it. It is `EX_TEMPFAIL` of sysexits.h.
pub const TRY_AGAIN: u8 = 75;

/// What the script is made from.
pub(super) struct Script<'a> {
    pub(super) experiment: &'a str,
    /// The cells of the array, in order.
    pub(super) cells: &'a [usize],
    pub(super) binary: &'a Path,
    /// Where relative paths of the command line begin.
    pub(super) origin: &'a Path,
    /// The directory of the run, as an absolute path.
    pub(super) directory: &'a Path,
    pub(super) cpus: u16,
    pub(super) limit: Option<u32>,
    pub(super) partition: Option<&'a str>,
    pub(super) time: Option<&'a str>,
}

impl Script<'_> {
    pub(super) fn text(&self) -> String {
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let log = self.directory.join(super::ATTEMPTS).join("log");
        // Slurm takes `%a` for the number of the task, and `%%` for the character.
        let log = log.to_string_lossy().replace('%', "%%");
        let limit = self
            .limit
            .map_or(String::new(), |limit| format!("%{limit}"));
        let option = |name: &str, value: Option<&str>| match value {
            Some(value) => format!("#SBATCH --{name}={value}\n"),
            None => String::new(),
        };
        format!(
            "#!/bin/bash
# Cells of `straightflow {experiment}`. Without Slurm, `bash grid.sbatch N` runs cell N.
#SBATCH --job-name=straightflow-{experiment}
#SBATCH --array={array}{limit}
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=\"{log}/%a.txt\"
#SBATCH --signal=B:TERM@60
{partition}{time}
cd {origin} || exit 2
{binary} cell {directory} \"${{SLURM_ARRAY_TASK_ID:-$1}}\" --jobs {cpus} &
cell=$!
# Preemption and, a minute before its end, the time limit: the cell keeps a checkpoint and ends.
trap 'stopped=1; kill -TERM \"$cell\"' TERM
wait \"$cell\"
code=$?
if [ -n \"$stopped\" ]; then
    wait \"$cell\"
    code=$?
fi
if [ \"$code\" -eq {TRY_AGAIN} ] && [ -n \"$SLURM_JOB_ID\" ]; then
    scontrol requeue \"$SLURM_JOB_ID\"
fi
exit \"$code\"
",
            experiment = self.experiment,
            array = ranges(self.cells),
            cpus = self.cpus,
            partition = option("partition", self.partition),
            time = option("time", self.time),
            origin = path(self.origin),
            binary = path(self.binary),
            directory = path(self.directory),
        )
    }
}

/// Numbers in order, with those that follow each other as ranges: `0-3,7`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = ranges.into_iter().map(|(start, end)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    });
    words.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3]), "0-3");
        assert_eq!(ranges(&[2]), "2");
        assert_eq!(ranges(&[0, 2, 3, 7]), "0,2-3,7");
    }
}
