//! Progress on stderr; on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// The bar of one transfer, in thousandths.
pub(crate) fn transfer() -> ProgressBar {
    bar(1_000, "  {bar:40.blue} {percent:>3} %  {msg}")
}

/// The bar of a comparison, in runs.
pub(crate) fn comparison(runs: u64) -> ProgressBar {
    bar(runs, "  {bar:40.blue} {pos}/{len} runs, {eta} left  {msg}")
}

fn bar(length: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    // indicatif draws nothing where stderr is no terminal.
    ProgressBar::new(length).with_style(style.progress_chars("━╸ "))
}
