//! The flags of the air's errors.

use airmend_proto::link::{ErrorModel, parse_burst, parse_fading};
use airmend_proto::units::{parse_ber, parse_probability};
use clap::Args;

/// One error process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Errors of the air hop, in each direction")]
#[group(id = "errors", multiple = false)]
pub(crate) struct ErrorArgs {
    /// Independent frame loss with this probability, such as 0.05 or 5%.
    #[arg(long, value_name = "P", value_parser = parse_probability)]
    loss: Option<f64>,
    /// Independent bit errors with this probability, such as 4e-6 or 1/256Ki.
    #[arg(long, value_name = "P", value_parser = parse_ber)]
    ber: Option<f64>,
    /// N frames lost in a row in every so many bytes, such as 4/64Ki.
    #[arg(long, value_name = "N/BYTES", value_parser = parse_burst)]
    burst: Option<ErrorModel>,
    /// Markov fading, such as good=300ms,bad=30ms,loss=0.5.
    #[arg(long, value_name = "good=T,bad=T,loss=P", value_parser = parse_fading)]
    fading: Option<ErrorModel>,
}

impl ErrorArgs {
    /// The error process of the flags.
    pub(crate) fn model(&self) -> ErrorModel {
        let loss = self.loss.map(ErrorModel::Loss);
        let ber = self.ber.map(ErrorModel::Ber);
        loss.or(ber).or(self.burst).or(self.fading).unwrap_or(ErrorModel::None)
    }
}

/// Error processes to compare at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Errors of the air hop, in each direction")]
#[group(id = "errors", multiple = false)]
pub(crate) struct ErrorLists {
    /// Independent frame loss with each of these probabilities, such as 0,0.01,0.05.
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse_probability)]
    loss: Vec<f64>,
    /// Independent bit errors with each of these probabilities, such as 1e-6,1/256Ki.
    #[arg(long, value_name = "P,..", value_delimiter = ',', value_parser = parse_ber)]
    ber: Vec<f64>,
    /// N frames lost in a row in every so many bytes, each of these, such as 2/64Ki,4/64Ki.
    #[arg(long, value_name = "N/BYTES,..", value_delimiter = ',', value_parser = parse_burst)]
    burst: Vec<ErrorModel>,
    /// Markov fading, such as good=300ms,bad=30ms,loss=0.5.
    #[arg(long, value_name = "good=T,bad=T,loss=P", value_parser = parse_fading)]
    fading: Option<ErrorModel>,
}

impl ErrorLists {
    /// The error processes of the flags, at least one, each once.
    pub(crate) fn models(&self) -> Vec<ErrorModel> {
        let losses = self.loss.iter().copied().map(ErrorModel::Loss);
        let bers = self.ber.iter().copied().map(ErrorModel::Ber);
        let mut models = Vec::new();
        for model in losses.chain(bers).chain(self.burst.iter().copied()).chain(self.fading) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        if models.is_empty() { vec![ErrorModel::None] } else { models }
    }
}
