//! Command lines that repeat results.

/// Options that say where and how results are made, and change none, and whether they take a value.
const ASIDE: [(&str, bool); 10] = [
    ("--out", true),
    ("--jobs", true),
    ("--json", false),
    ("--submit", true),
    ("--partition", true),
    ("--time", true),
    ("--cpus-per-task", true),
    ("--array-limit", true),
    ("--lease", true),
    ("--cells", true),
];

/// A command line as it is to be repeated: by the name of the program, and without the options that
/// say where results go, how many threads work on them and on which machines.
pub fn command_line(words: &[String]) -> String {
    let words: Vec<String> = repeating_words(words).iter().map(|w| quoted(w)).collect();
    words.join(" ")
}

/// The words of [`command_line`].
pub(crate) fn repeating_words(words: &[String]) -> Vec<String> {
    let mut kept = vec!["straightflow".to_owned()];
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        match ASIDE.iter().find(|(aside, _)| *aside == name) {
            Some((_, true)) if name == word => {
                words.next();
            }
            Some(_) => {}
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=.,:/@+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_what_repeats_the_results() {
        let words = "target/release/straightflow poisson --out runs/a --seeds 5 --jobs=2 --json";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(command_line(&words), "straightflow poisson --seeds 5");
        let words = "straightflow toy --submit slurm --time 1:00:00 --cells=3 --lease 5 --seeds 4";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(command_line(&words), "straightflow toy --seeds 4");
        let words = ["straightflow", "vae", "--data", "the data", "1>0.1@1e-5"];
        let line = command_line(&words.map(str::to_owned));
        assert_eq!(line, "straightflow vae --data 'the data' '1>0.1@1e-5'");
    }
}
