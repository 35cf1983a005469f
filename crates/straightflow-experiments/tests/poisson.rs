//! The Poisson game against the acceptance checks 15 to 18 of its mathematics: bands of time
//! deviations that four banks of seeds gave, at one common learning rate, with 20 seeds.
//!
//! A deviation of 20 games has a standard error of about a tenth of itself, and the bands are wider
//! than four of those on either side; the keys are fixed.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use straightflow_experiments::poisson::{
    Cell, GameError, GameObjective, Parametrisation, PoissonGame, Settings, Summary, flow_step,
    kernel_weights, paper_gain,
};
use straightflow_experiments::runner::{Assignment, Nowhere, RunError, work};

fn game(settings: Settings) -> PoissonGame {
    let config = settings.config().expect("valid settings");
    PoissonGame::new(config).expect("a valid configuration")
}

fn play(game: &PoissonGame, directory: Option<&Path>, jobs: usize) -> Result<Summary, RunError> {
    let assignment = Assignment {
        directory,
        jobs,
        command: "",
        may_grow: false,
        failures: &[],
        stop: &|| false,
    };
    Ok(work(game, &assignment, &mut Nowhere)?.summary)
}

fn summary(settings: Settings) -> Summary {
    play(&game(settings), None, 2).expect("the games are played")
}

/// The cells that are recorded in a directory, in the order of the configuration.
fn cells(game: &PoissonGame, directory: &Path) -> Vec<Cell> {
    let text = fs::read_to_string(directory.join("metrics.jsonl")).expect("records");
    let lines = text.lines().map(serde_json::from_str);
    let mut cells: Vec<Cell> = lines.collect::<Result<_, _>>().expect("cells");
    cells.sort_by_key(|cell| game.place(cell).expect("a cell of the configuration"));
    cells
}

/// The default table, played once for all tests.
fn table() -> &'static Summary {
    static TABLE: OnceLock<Summary> = OnceLock::new();
    TABLE.get_or_init(|| summary(Settings::default()))
}

fn time_std(id: &str) -> f64 {
    let row = table().row(id);
    row.expect("a row of the default table").time_std
}

#[test]
fn the_paper_s_table_reproduces_at_a_common_learning_rate() {
    for (id, low, high) in [
        ("pwgf:preset=paper", 0.006, 0.018),
        ("straight-through", 0.09, 0.22),
        ("muprop", 0.08, 0.20),
        ("reinforce:baseline=loo", 0.09, 0.21),
    ] {
        let row = table().row(id).expect("a row");
        assert!(
            (low..=high).contains(&row.time_std),
            "{id}: {}",
            row.time_std
        );
        assert!((row.mean - 5.0).abs() <= 0.05, "{id}: {}", row.mean);
        assert!(row.paper_std.is_some(), "{id}");
        assert_eq!(row.learning_rate, 2.5);
    }
    let ratio = time_std("straight-through") / time_std("pwgf:preset=paper");
    assert!(ratio >= 6.0, "{ratio}");
}

#[test]
fn the_controls_remove_the_gap() {
    let plain = time_std("straight-through");
    for (what, ratio, low, high) in [
        (
            "matched straight-through to pWGF",
            time_std("matched:straight-through") / time_std("pwgf:preset=paper"),
            0.6,
            1.6,
        ),
        (
            "exact gradient to straight-through",
            time_std("enumerate") / plain,
            0.6,
            1.3,
        ),
        (
            "pWGF of unit gain to straight-through",
            time_std("pwgf:preset=paper,gain=projection") / plain,
            0.5,
            1.4,
        ),
    ] {
        assert!((low..=high).contains(&ratio), "{what}: {ratio}");
    }
    let finding = &table().finding;
    assert!(
        finding
            .contains("the gap between straight-through and pWGF comes from the size of the step"),
        "{finding}"
    );
}

#[test]
fn without_the_control_variate_pwgf_oscillates() {
    let ratio = time_std("pwgf:preset=paper,cv=off") / time_std("pwgf:preset=paper");
    assert!(ratio >= 8.0, "{ratio}");
}

#[test]
fn at_a_small_rate_bias_decides() {
    let estimators = ["finite-difference", "second-order-st", "straight-through"];
    let table = summary(Settings {
        rate: 0.5,
        init: 2.0,
        learning_rate: 0.05,
        epochs: 100,
        estimators: estimators.map(str::to_owned).to_vec(),
        ..Settings::default()
    });
    assert_eq!(table.tail, 20);
    let [difference, second_order, plain] = estimators.map(|id| table.row(id).expect("a row").rmse);
    assert!(
        difference < second_order && second_order < plain,
        "{table:?}"
    );
    assert!(difference <= 0.015, "{difference}");
    assert!(plain >= 0.03, "{plain}");
    assert!(
        table.rows.iter().all(|row| row.paper_mean.is_none()),
        "the paper's rate is 5"
    );
}

#[test]
fn the_objective_as_printed_saturates_the_discriminator() {
    let table = summary(Settings {
        objective: GameObjective::Literal,
        estimators: vec!["enumerate".to_owned()],
        seeds: 10,
        ..Settings::default()
    });
    let row = &table.rows[0];
    assert!(row.openness < 0.1, "{}", row.openness);
    assert!(row.mean > 5.5 && row.settled <= 2, "{row:?}");
    assert!(table.finding.contains("saturated"), "{}", table.finding);
}

/// Few and short games.
fn small() -> Settings {
    Settings {
        estimators: vec!["enumerate".to_owned(), "straight-through".to_owned()],
        samples: 20,
        epochs: 4,
        seeds: 13,
        ..Settings::default()
    }
}

#[test]
fn neither_threads_nor_resuming_change_a_bit() {
    let place = tempfile::tempdir().expect("a directory");
    let (game, one) = (game(small()), place.path().join("one"));
    let expected = play(&game, Some(&one), 1).expect("played");
    let recorded = cells(&game, &one);
    assert_eq!(recorded.len(), 4);
    let three = place.path().join("three");
    assert!(play(&game, Some(&three), 3).expect("played") == expected);
    assert!(cells(&game, &three) == recorded);
    // What was recorded comes back in any order.
    let resumed = place.path().join("resumed");
    fs::create_dir(&resumed).expect("a directory");
    fs::copy(one.join("config.toml"), resumed.join("config.toml")).expect("copied");
    let line = |index: usize| serde_json::to_string(&recorded[index]).expect("JSON") + "\n";
    fs::write(resumed.join("metrics.jsonl"), line(3) + &line(0)).expect("written");
    assert!(play(&game, Some(&resumed), 2).expect("played") == expected);
    assert!(cells(&game, &resumed) == recorded);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let elsewhere = pool.expect("threads").install(|| play(&game, None, 1));
    assert!(elsewhere.expect("played") == expected);
}

#[test]
fn cells_of_another_configuration_are_refused() {
    let (game, place) = (game(small()), tempfile::tempdir().expect("a directory"));
    play(&game, Some(place.path()), 2).expect("played");
    let mut foreign = cells(&game, place.path()).remove(0);
    foreign.row = "muprop".to_owned();
    let error = game.place(&foreign).expect_err("a foreign row");
    assert!(matches!(&error, GameError::ForeignCell { row, .. } if row == "muprop"));
    assert!(error.is_bad_input());
}

#[test]
fn seeds_differ_and_rows_meet_the_same_games() {
    let (game, place) = (game(small()), tempfile::tempdir().expect("a directory"));
    play(&game, Some(place.path()), 2).expect("played");
    let cells = cells(&game, place.path());
    let first = |row: usize| &cells[2 * row].games;
    let lasts: Vec<f64> = first(0).iter().map(|game| game.last).collect();
    assert!(
        lasts
            .iter()
            .all(|last| lasts.iter().filter(|x| *x == last).count() == 1)
    );
    assert_ne!(first(0)[0].last, first(1)[0].last);
    assert_eq!(first(0)[0].curve[0], 1.0);
    assert_eq!(first(0)[0].curve.len(), 5);
    assert_eq!(first(0)[0].curve[4], first(0)[0].last);
}

#[test]
fn every_parametrisation_finds_the_rate() {
    // The gradient with respect to the logarithm is 5 times as long as that with respect to the
    // rate, and so is its effect.
    for (parametrisation, learning_rate) in [
        (Parametrisation::Direct, 0.5),
        (Parametrisation::Softplus, 0.5),
        (Parametrisation::LogRate, 0.02),
    ] {
        let table = summary(Settings {
            parametrisation,
            learning_rate,
            estimators: vec!["enumerate".to_owned()],
            seeds: 3,
            ..Settings::default()
        });
        let row = &table.rows[0];
        assert!(
            (row.mean - 5.0).abs() < 0.1,
            "{parametrisation:?}: {}",
            row.mean
        );
        assert_eq!(row.settled, 3);
    }
}

#[test]
fn a_fixed_data_set_decides_where_a_game_ends() {
    let table = |data: usize| {
        summary(Settings {
            data,
            estimators: vec!["matched:enumerate".to_owned()],
            seeds: 5,
            ..Settings::default()
        })
    };
    // The mean of 30 counts has the standard deviation sqrt(5 / 30) = .41.
    assert!(table(30).rows[0].seed_std > 5.0 * table(0).rows[0].seed_std);
}

#[test]
fn bad_settings_are_refused() {
    let estimator = |spec: &str| Settings {
        estimators: vec![spec.to_owned()],
        ..small()
    };
    for (settings, message) in [
        (
            Settings {
                rate: 0.0,
                ..small()
            },
            "the rate must be positive",
        ),
        (
            Settings {
                rate: f64::NAN,
                ..small()
            },
            "the rate must be positive",
        ),
        (
            Settings {
                init: -1.0,
                ..small()
            },
            "the initial rate must be positive",
        ),
        (
            Settings {
                learning_rate: 0.0,
                ..small()
            },
            "the learning rate must be positive",
        ),
        (
            Settings {
                seeds: 0,
                ..small()
            },
            "the number of seeds must be at least 1",
        ),
        (
            Settings {
                samples: 0,
                ..small()
            },
            "at least 1",
        ),
        (
            Settings {
                epochs: 0,
                ..small()
            },
            "the number of epochs must be at least 1",
        ),
        (
            Settings {
                tail: Some(5),
                ..small()
            },
            "the tail must be between 1 and the number of epochs",
        ),
        (
            Settings {
                estimators: Vec::new(),
                ..small()
            },
            "no estimator was given",
        ),
        (estimator("straight-thru"), "did you mean"),
        (estimator("pwgf:bandwith=1sd"), "has no option `bandwith`"),
        (estimator("arm"), "does not support poisson"),
        (
            estimator("reinforce:baseline=learned"),
            "learns state of its own",
        ),
        (
            Settings {
                estimators: vec!["enumerate".to_owned(); 2],
                ..small()
            },
            "`enumerate` was given twice",
        ),
    ] {
        let error = settings.config().expect_err(message);
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.is_bad_input());
    }
}

#[test]
fn a_game_that_diverges_fails() {
    let settings = Settings {
        parametrisation: Parametrisation::LogRate,
        learning_rate: 1e6,
        ..small()
    };
    let error = play(&game(settings), None, 1).expect_err("it diverges");
    assert!(!error.is_bad_input());
    let RunError::Failed(cause) = error else {
        panic!("{error}");
    };
    let cause: Box<dyn Error> = cause;
    let cause = cause.downcast_ref::<GameError>();
    assert!(
        matches!(cause, Some(GameError::Diverged { .. })),
        "{cause:?}"
    );
}

#[test]
fn the_floor_acts_and_is_counted() {
    let table = summary(Settings {
        learning_rate: 100.0,
        seeds: 2,
        ..small()
    });
    let floored: usize = table.rows.iter().map(|row| row.floored).sum();
    assert!(floored > 0);
}

#[test]
fn the_gain_of_the_paper_s_gradient() {
    // 2 M at rate 5 with h = sqrt 5.
    assert!((paper_gain(5.0) - 2.0 * 3.892941703229e-2).abs() < 1e-12);
}

#[test]
fn the_numbers_behind_the_pictures() {
    let config = small().config().expect("valid settings");
    let step = flow_step(&config).expect("a step");
    assert!(
        step.rates[1] > step.rates[0],
        "towards the data: {:?}",
        step.rates
    );
    let total: f64 = step.laws[1].iter().map(|(_, p)| p).sum();
    assert!((total - 1.0).abs() < 1e-3, "{total}");
    let weights = kernel_weights(5.0).expect("weights");
    // c / E c at z = 5 with h = sd, and a negative weight far out.
    let narrow = &weights[0].points;
    assert!((narrow[5].1 - 1.86).abs() < 0.01, "{}", narrow[5].1);
    assert!((narrow[10].1 + 0.65).abs() < 0.01, "{}", narrow[10].1);
}

#[test]
fn a_configuration_is_what_its_settings_lead_to() {
    for settings in [Settings::default(), small()] {
        let config = settings.config().expect("valid settings");
        let again = config.settings().config().expect("valid settings");
        assert_eq!(again, config);
    }
}
