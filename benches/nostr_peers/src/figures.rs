//! The figures of a run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::facts::median;
use crate::stores::Done;

/// The result of one store in one row.
pub struct Figure {
    pub row: String,
    pub store: &'static str,
    pub unit: Unit,
    /// In the order of the rounds.
    pub runs: Vec<f64>,
    /// The same by processor time, if processor time is meaningful.
    pub by_cpu: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Milliseconds,
    Microseconds,
    Megabytes,
}

/// All figures, in the order in which their rows began.
#[derive(Default)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    pub fn rate(&mut self, row: &str, store: &'static str, done: Done) {
        let per = |time: Duration| done.count as f64 / time.as_secs_f64();
        let figure = self.of(row, store, Unit::PerSecond, per(done.wall));
        figure.by_cpu.push(per(done.cpu));
    }

    pub fn milliseconds(&mut self, row: &str, store: &'static str, time: Duration) {
        self.of(row, store, Unit::Milliseconds, time.as_secs_f64() * 1e3);
    }

    pub fn microseconds(&mut self, row: &str, store: &'static str, time: Duration) {
        self.of(row, store, Unit::Microseconds, time.as_secs_f64() * 1e6);
    }

    pub fn megabytes(&mut self, row: &str, store: &'static str, bytes: u64) {
        self.of(row, store, Unit::Megabytes, bytes as f64 / 1e6);
    }

    pub fn find(&self, row: &str, store: &str) -> Option<&Figure> {
        self.0.iter().find(|figure| figure.row == row && figure.store == store)
    }

    fn of(&mut self, row: &str, store: &'static str, unit: Unit, value: f64) -> &mut Figure {
        eprintln!("  {row}, {store}: {}", unit.shown(value));
        let known = self.0.iter().position(|figure| figure.row == row && figure.store == store);
        let at = known.unwrap_or_else(|| {
            let none = (Vec::new(), Vec::new());
            self.0.push(Figure { row: row.into(), store, unit, runs: none.0, by_cpu: none.1 });
            self.0.len() - 1
        });
        let figure = &mut self.0[at];
        figure.runs.push(value);
        figure
    }
}

impl Figure {
    pub fn median(&self) -> f64 {
        median(&self.runs)
    }

    pub fn to_json(&self) -> Value {
        let rounded = |values: &[f64]| values.iter().map(|value| round(*value)).collect::<Value>();
        json!({
            "row": self.row,
            "store": self.store,
            "unit": self.unit.name(),
            "median": round(self.median()),
            "runs": rounded(&self.runs),
            "runs_by_cpu_time": rounded(&self.by_cpu),
        })
    }
}

/// Digits beyond these are noise.
fn round(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap()
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Megabytes => "MB",
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        self == Self::PerSecond
    }

    pub fn shown(self, value: f64) -> String {
        match (self, value) {
            (Self::PerSecond, rate) if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
            (Self::PerSecond, rate) if rate >= 1e3 => format!("{:.1} k/s", rate / 1e3),
            (Self::PerSecond, rate) => format!("{rate:.0} /s"),
            (Self::Microseconds, time) if time >= 1e4 => format!("{:.1} ms", time / 1e3),
            (unit, value) if value >= 100.0 => format!("{value:.0} {}", unit.name()),
            (unit, value) => format!("{value:.1} {}", unit.name()),
        }
    }
}
