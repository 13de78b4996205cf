//! Any text as a scenario: it is refused with one sentence that names a line of the text, or has a
//! bounded number of runs, and is read the same again.

use airmend_sim::Experiment;

/// Points of a sweep are legal in great numbers, which only takes time.
const MAX_POINTS: usize = 100;

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    // A range has as many values as it likes.
    if text.contains("..") || text.matches(',').count() > MAX_POINTS {
        return;
    }
    let read = |settings| Experiment::parse("fuzz".to_owned(), text.to_owned(), settings);
    match read(&[]) {
        Ok(experiment) => {
            assert!((1..=1_000_000).contains(&experiment.len()));
            let is_whole = |values: &Vec<String>| values.len() == experiment.swept.len();
            assert!(experiment.points.iter().all(|point| is_whole(&point.values)));
            let again = read(&[]).expect("it was read before");
            assert_eq!(format!("{experiment:?}"), format!("{again:?}"));
            // A file that says nothing of the seed gets the same by a setting.
            let seed = [("seed".to_owned(), experiment.seed.to_string())];
            let set = read(&seed).expect("it was read before");
            assert_eq!(set.points.len(), experiment.points.len());
            assert_eq!(set.seed, experiment.seed);
        }
        Err(error) => {
            let sentence = error.to_string();
            let line = sentence.strip_prefix("fuzz:").and_then(|rest| rest.split(':').next());
            let line: usize = line.and_then(|line| line.parse().ok()).expect(&sentence);
            assert!((1..=text.matches('\n').count() + 1).contains(&line), "{sentence}");
            assert_eq!(sentence.lines().count(), 1, "{sentence}");
        }
    }
}
