//! Command lines that repeat results.

/// A command line as it is to be repeated: by the name of the program, and without the options that
/// say where results go and how many threads work on them.
pub fn command_line(words: &[String]) -> String {
    const ASIDE: [(&str, bool); 3] = [("--out", true), ("--jobs", true), ("--json", false)];
    let mut line = "straightflow".to_owned();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        if let Some((_, takes_value)) = ASIDE.iter().find(|(aside, _)| *aside == name) {
            if *takes_value && name == word {
                words.next();
            }
            continue;
        }
        line.push(' ');
        line += &quoted(word);
    }
    line
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
        let words = ["straightflow", "vae", "--data", "the data", "1>0.1@1e-5"];
        let line = command_line(&words.map(str::to_owned));
        assert_eq!(line, "straightflow vae --data 'the data' '1>0.1@1e-5'");
    }
}
