//! `straightflow list`: the registry as a table, as JSON or as the page of the documentation.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Entry as Estimator, KINDS, Need, REGISTRY};
use straightflow_experiments::Entry;

#[derive(Args)]
pub struct Arguments {
    /// Print an array of {id, name, families, bias, needs, price, draw, reference}.
    #[arg(long)]
    json: bool,
    /// Print the page docs/estimators.md.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// List the experiments instead of the estimators.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    experiments: bool,
}

/// One estimator as it is printed.
#[derive(Serialize)]
struct Row {
    id: &'static str,
    name: &'static str,
    families: &'static [FamilyKind],
    bias: String,
    needs: &'static [Need],
    price: String,
    draw: &'static str,
    reference: &'static str,
}

impl From<&Estimator> for Row {
    fn from(entry: &Estimator) -> Self {
        Self {
            id: entry.id,
            name: entry.name,
            families: entry.families,
            bias: entry.bias.to_string(),
            needs: entry.needs,
            price: entry.price.to_string(),
            draw: draw(entry),
            reference: entry.reference,
        }
    }
}

pub fn run(
    arguments: &Arguments,
    experiments: &[Entry],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if arguments.experiments {
        for entry in experiments {
            writeln!(out, "{:10}  {}", entry.id, entry.about)?;
        }
    } else if arguments.json {
        let rows: Vec<Row> = REGISTRY.iter().map(|entry| Row::from(*entry)).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&rows)?)?;
    } else if arguments.markdown {
        write!(out, "{}", markdown())?;
    } else {
        table(out)?;
    }
    Ok(())
}

fn table(out: &mut impl Write) -> std::io::Result<()> {
    let widest = REGISTRY.iter().map(|entry| entry.id.len()).max();
    let width = widest.unwrap_or(0);
    writeln!(
        out,
        "f: an evaluation of the cost; df: a backward pass through it; n: draws; d: variables (coordinates); k: categories.\n\
         needs: what a method uses of the cost: its values (f), its derivative (df) or both.\n\
         draw: what `draw`, the drop-in, returns: hard samples that carry a gradient, or samples that are relaxed in \
         training and hard otherwise; no: the method has none, it needs the cost as a closure.\n\
         options: the keys of a specification, as in `reinforce:baseline=loo,samples=4` (`preset=..` sets several at \
         once); docs/estimators.md has their defaults and meanings.\n\
         Families: {}.\n",
        join(FamilyKind::ALL)
    )?;
    for kind in KINDS {
        writeln!(out, "# {}: {}", kind.name, kind.about)?;
        for entry in kind.methods {
            writeln!(out, "{:width$}  {}", entry.id, families(entry))?;
            writeln!(
                out,
                "{:width$}  bias: {}; needs: {}; price: {}; draw: {}",
                "",
                entry.bias,
                needs(entry),
                entry.price,
                draw(entry)
            )?;
            let presets = entry.presets.iter();
            let presets = presets.map(|preset| format!("preset={}", preset.name));
            let keys = entry.options.iter().map(|one| one.key()).chain(presets);
            let keys: Vec<String> = keys.collect();
            writeln!(out, "{:width$}  options: {}", "", keys.join(", "))?;
            writeln!(
                out,
                "{:width$}  {}.{}",
                "",
                sentence(entry.reference),
                also(entry)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A text that begins a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The other names of a method, as a sentence.
fn also(entry: &Estimator) -> String {
    match entry.aliases {
        [] => String::new(),
        names => format!(" Other names: `{}`.", names.join("`, `")),
    }
}

/// What `draw` gives with the default options.
fn draw(entry: &Estimator) -> &'static str {
    let method = entry.build(entry.defaults().into());
    let method = method.expect("the defaults are valid");
    match method.pathwise() {
        None => "no",
        Some(_) if method.hard_samples() => "hard",
        Some(_) => "relaxed in training",
    }
}

fn families(entry: &Estimator) -> String {
    let lacks = |kind: &&FamilyKind| !entry.families.contains(kind);
    let lacking: Vec<FamilyKind> = FamilyKind::ALL.iter().filter(lacks).copied().collect();
    let mut text = match lacking.as_slice() {
        [] => "all families".to_owned(),
        few if few.len() <= 2 => format!("all families except {}", join(few)),
        _ => join(entry.families),
    };
    if !entry.also.is_empty() {
        text += &format!(" ({} with some options)", join(entry.also));
    }
    text
}

/// What a method needs of the cost; what it needs with some options shows in its price.
fn needs(entry: &Estimator) -> String {
    let needs = join(entry.needs);
    let some = !entry.needs.contains(&Need::Gradient) && entry.price.to_string().contains("df");
    match some {
        true => format!("{needs} (with some options also df)"),
        false => needs,
    }
}

fn join<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

/// The page docs/estimators.md.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Estimators\n\n\
         <!-- Generated by `cargo run --release -- list --markdown > docs/estimators.md`. -->\n\n\
         An estimator is named by a specification, `id` or `id:key=value,key=value`. The price is \
         that of an estimate with `n` draws of `d` coordinates: `f` is an evaluation of the cost at \
         one draw, `df` a backward pass to it. The last column says what the drop-in `draw` returns: \
         hard samples, samples that are relaxed in training (while the parameters are on a tape) and \
         hard otherwise, or an error.\n\n\
         | id | families | bias | needs | price | draw |\n|---|---|---|---|---|---|\n",
    );
    for kind in KINDS {
        page += &format!("| **{}** | {} | | | | |\n", kind.name, kind.about);
        for entry in kind.methods {
            page += &format!(
                "| [`{0}`](#{0}) | {1} | {2} | {3} | {4} | {5} |\n",
                entry.id,
                families(entry),
                entry.bias,
                needs(entry),
                entry.price,
                draw(entry)
            );
        }
    }
    for entry in REGISTRY {
        page += &format!(
            "\n## {}\n\n{}. {}.{}\n",
            entry.id,
            entry.name,
            sentence(entry.reference),
            also(entry)
        );
        page += "\n| option | default | meaning |\n|---|---|---|\n";
        let defaults = entry.defaults();
        for option in entry.options {
            let (key, about) = (option.key(), option.about());
            let default = straightflow::estimator::display_option(&defaults[&key]);
            page += &format!("| `{key}` | `{default}` | {about} |\n");
        }
        if !entry.presets.is_empty() {
            page += "\n| preset | meaning | options |\n|---|---|---|\n";
        }
        for preset in entry.presets {
            let options: Vec<String> = preset
                .options
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            page += &format!(
                "| `{}` | {} | `{}` |\n",
                preset.name,
                preset.about,
                options.join(",")
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/estimators.md");
        let page = std::fs::read_to_string(path).expect("docs/estimators.md");
        assert!(
            page == markdown(),
            "run `cargo run --release -- list --markdown > docs/estimators.md`"
        );
    }
}
