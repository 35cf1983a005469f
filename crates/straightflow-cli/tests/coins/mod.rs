//! A made-up experiment: two coins, each tossed some hundred times, and one plot. This folder is all that an
//! experiment takes, beside its word in the list.

use clap::Args;
use serde::{Deserialize, Serialize};
use straightflow::Key;
use straightflow_experiments::arguments::count;
use straightflow_experiments::runner::{Desk, RunError};
use straightflow_experiments::{Ended, Experiment, File, Outcomes, Plan, Recalled};
use straightflow_report::page::{Column, Format, Page, Table};
use straightflow_report::plot::{Axis, Dot, Dots};

pub use Coins as This;

/// The coins and how often they show heads.
const COINS: [(&str, f64); 2] = [("fair", 0.5), ("bent", 0.7)];

#[derive(Args, Debug)]
pub struct Arguments {
    /// Tosses of each coin [default: 1000].
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    tosses: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    tosses: u32,
}

/// What is recorded of a coin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Coin {
    coin: String,
    heads: u32,
    share: f64,
    chance: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Summary {
    experiment: String,
    rows: Vec<Coin>,
}

#[derive(Debug)]
pub struct Coins {
    config: Config,
}

impl Experiment for Coins {
    const ID: &'static str = "coins";
    const ABOUT: &'static str = "Two coins, tossed again and again.";
    const EXAMPLES: &'static str = "Examples:\n  straightflow coins --tosses 100";
    // Long enough for an interrupt to arrive before the end.
    const SMALL: &'static str = "--tosses 500000";
    const QUICK: &'static [Plan] = &[("coins", "--tosses 100")];

    type Arguments = Arguments;
    type Config = Config;
    type Record = Coin;
    type Outcome = Coin;
    type Summary = Summary;

    fn prepare(arguments: &Arguments, recorded: Option<Config>) -> Result<Self, RunError> {
        let from = recorded.map_or(1000, |config| config.tosses);
        let tosses = arguments.tosses.unwrap_or(from);
        Ok(Self {
            config: Config { tosses },
        })
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        COINS.map(|(name, _)| name.to_owned()).to_vec()
    }

    fn recall(&self, _place: usize, coin: Coin) -> Result<Recalled<Coin>, RunError> {
        let cell = COINS.iter().position(|(name, _)| *name == coin.coin);
        Ok(cell.map_or(Recalled::Part, |cell| Recalled::Complete(cell, coin)))
    }

    fn run(&self, cell: usize, desk: &Desk) -> Result<Coin, RunError> {
        let (name, chance) = COINS[cell];
        let mut heads = 0;
        for toss in 0..self.config.tosses {
            if toss % 1000 == 0 {
                desk.check()?;
                desk.progress(f64::from(toss) / f64::from(self.config.tosses));
            }
            let key = Key::new(1).child(cell as u64).child(toss.into());
            let uniform = key.seed()[0];
            heads += u32::from(f64::from(uniform) < 256.0 * chance);
        }
        Ok(Coin {
            coin: name.to_owned(),
            heads,
            share: f64::from(heads) / f64::from(self.config.tosses),
            chance,
        })
    }

    fn record(&self, _cell: usize, coin: &Coin) -> Option<Coin> {
        Some(coin.clone())
    }

    fn summarise(&self, outcomes: &Outcomes<Coin>) -> Summary {
        Summary {
            experiment: Self::ID.to_owned(),
            rows: outcomes.iter().flatten().cloned().collect(),
        }
    }

    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        let dot = |coin: &Coin| Dot {
            label: coin.coin.clone(),
            value: coin.share,
            interval: None,
            group: 0,
        };
        let dots = Dots {
            title: "How often heads came".to_owned(),
            caption: "The share of heads.".to_owned(),
            x_label: "share".to_owned(),
            x_axis: Axis::Linear,
            rows: ended.summary.rows.iter().map(dot).collect(),
        };
        Ok(vec![("heads.svg".to_owned(), dots.svg().into_bytes())])
    }

    fn show(summary: &Summary) -> Page {
        let columns = [
            Column::new("heads", "heads", Format::Significant(4), |coin: &Coin| {
                u64::from(coin.heads)
            }),
            Column::new("share", "share", Format::Decimals(3), |coin: &Coin| {
                coin.share
            })
            .about("of all tosses")
            .paper("Table 9", |coin| Some(coin.chance)),
            // A new number is a line: it has no field in the record.
            Column::new(
                "surprise",
                "surprise",
                Format::Decimals(2),
                |coin: &Coin| -coin.share.ln(),
            )
            .unit("nats"),
        ];
        let table = Table::new(&columns, &summary.rows, |coin| coin.coin.as_str().into());
        Page::new("Two coins", "Heads or tails.").table(table)
    }
}
