//! The TCP model beside kernel TCP: `docs/validation.md`.

use airmend_sim::{Experiment, Outcome};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Congestion control, SACK, loss.
type Place = (String, bool, String);

fn directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/validation")
}

/// The text of a field in a line of results.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{line}"));
    rest.split([',', '}']).next().unwrap_or_default().trim_matches('"')
}

/// Loss in per cent.
fn per_cent(share: f64) -> String {
    format!("{}%", share * 100.0)
}

/// Goodput of each run in bits per second, as measured on kernel TCP.
fn kernel() -> BTreeMap<Place, Vec<f64>> {
    let mut points: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
    let text = std::fs::read_to_string(directory().join("kernel.jsonl")).unwrap();
    for line in text.lines() {
        let loss = per_cent(field(line, "loss").parse().unwrap());
        let place = (field(line, "cc").to_owned(), field(line, "sack") == "true", loss);
        points.entry(place).or_default().push(field(line, "goodput_bps").parse().unwrap());
    }
    points
}

/// The same of the model.
fn model() -> BTreeMap<Place, Vec<f64>> {
    let experiment = Experiment::load(&directory().join("kernel.toml"), &[]);
    let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
    let outcomes = experiment.run_all(2, &AtomicBool::new(false), |_, _| ()).unwrap();
    let runs = outcomes.chunks(experiment.runs as usize);
    let goodputs = |runs: &[Outcome]| runs.iter().map(|run| run.goodput_bps).collect();
    let points = experiment.points.iter().zip(runs).map(|(point, runs)| {
        let [cc, sack, loss] = &point.values[..] else { panic!("{:?}", point.values) };
        ((cc.clone(), sack == "true", loss.clone()), goodputs(runs))
    });
    points.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Within 15 % at each point, and on average closer than the noise of a point allows to tell.
#[test]
fn the_model_is_as_fast_as_the_kernel() {
    let (kernel, model) = (kernel(), model());
    assert_eq!(kernel.keys().collect::<Vec<_>>(), model.keys().collect::<Vec<_>>());
    assert_eq!(kernel.len(), 16);
    let mut ratios = Vec::new();
    for (place, measured) in &kernel {
        assert!(measured.len() >= 5, "{place:?} has {} runs", measured.len());
        let ratio = mean(&model[place]) / mean(measured);
        println!("{place:?}: {ratio:.3} of the kernel");
        ratios.push((place, ratio));
    }
    for (place, ratio) in &ratios {
        assert!((ratio - 1.0).abs() < 0.15, "{place:?}: {ratio:.3} of the kernel");
    }
    let all = mean(&ratios.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
    assert!((all - 1.0).abs() < 0.05, "on average {all:.3} of the kernel");
}
